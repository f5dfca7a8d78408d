#include <forebay/plan/phase_bound.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "plan/detail/instants.hpp"
#include "plan/detail/window_volumes.hpp"

namespace forebay::plan {
namespace {

constexpr std::int32_t window_cycles = 4;     // one before and one after any window of up to an iteration, which wraps
constexpr std::int32_t required_cycles = 16;  // in which the sweep's state recurs, as a rule after two or three

/// Cuts `i` to `i + length` of the iteration, cyclically: `length` parts, at most all.
struct window {
  std::int32_t from = 0;
  std::int32_t to = 0;
  link_volume bytes;
};

void charge(window_charge& w, resource r, double seconds) {
  if (seconds > w.seconds) {
    w.seconds = seconds;
    w.binding = r;
  }
}

/// Fills in what binds.
void charge_all(window_charge& w, const machine& m) {
  w.seconds = 0.0;
  w.binding = resource::compute;
  charge(w, resource::compute, w.compute_seconds);
  charge(w, resource::cpu, w.cpu_seconds);
  charge(w, resource::h2d, static_cast<double>(w.bytes.h2d) / m.h2d_rate);
  charge(w, resource::d2h, static_cast<double>(w.bytes.d2h) / m.d2h_rate);
  charge(w, resource::storage_read, static_cast<double>(w.bytes.storage_read) / storage_read_rate(m));
  charge(w, resource::storage_write, static_cast<double>(w.bytes.storage_written) / storage_write_rate(m));
  if (m.half_duplex_storage) {
    charge(w, resource::storage, least_storage_seconds(m, w.bytes.storage_read, w.bytes.storage_written));
  }
}

void check(const trace& t) {
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      if (a.item >= t.item_bytes.size()) {
        throw usage_error(fmt::format("step {} accesses item {}; there are {}", s, a.item, t.item_bytes.size()));
      }
    }
  }
}

}  // namespace

struct phase_bound::impl {
  impl(const trace& t, const machine& capacities, const bound_options& options) : order(t) {
    check(order);
    if (order.steps.empty()) {
      return;
    }
    const detail::window_volumes volumes(order, capacities, detail::concurrent_instants(order, options, window_cycles));
    layout = volumes.layout();
    fill_windows(volumes);
    bound_options sparse = options;
    sparse.extra_cuts = 0;
    required =
        detail::window_volumes(order, capacities,
                               options.single_caller ? detail::grant_instants(order, required_cycles)
                                                     : detail::concurrent_instants(order, sparse, required_cycles))
            .per_iteration();
  }

  void fill_windows(const detail::window_volumes& volumes) {
    const std::size_t cuts = layout.cuts.size();
    windows.resize(cuts);
    for (std::size_t i = 0; i < cuts; ++i) {
      for (std::size_t length = 1; length <= cuts; ++length) {
        const std::size_t end = i + length;
        window w{
            layout.per_cycle + layout.cuts[i], layout.per_cycle * (end >= cuts ? 2 : 1) + layout.cuts[end % cuts], {}};
        w.bytes = volumes.volumes(w.from, w.to);
        windows[i].push_back(w);
      }
    }
  }

  [[nodiscard]] window_charge charge_of(std::size_t cut, std::size_t length, const machine& m,
                                        std::span<const double> seconds) const {
    const window& w = windows[cut][length - 1];
    window_charge c;
    c.bytes = w.bytes;
    c.first_step = layout.cut_steps[cut];
    c.steps = length == layout.cuts.size() ? static_cast<std::uint32_t>(layout.steps)
                                           : distance(c.first_step, layout.cut_steps[(cut + length) % windows.size()]);
    for (std::int32_t s = 0; s < layout.steps * (window_cycles - 1); ++s) {
      const auto at = static_cast<std::size_t>(s);
      const auto in_cycle = static_cast<std::size_t>(s % layout.steps);
      if (layout.after[at] >= w.from && layout.before[at] <= w.to) {
        (layout.own[at] >= 0 ? c.compute_seconds : c.cpu_seconds) += seconds[in_cycle];
      }
    }
    charge_all(c, m);
    return c;
  }

  [[nodiscard]] std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    const auto steps = static_cast<std::uint32_t>(layout.steps);
    return (to + steps - from - 1) % steps + 1;
  }

  [[nodiscard]] std::string phases_of(const window_charge& w) const {
    std::string names;
    std::string last;
    for (std::uint32_t i = 0; i < w.steps; ++i) {
      const std::string& phase = order.steps[(w.first_step + i) % order.steps.size()].phase;
      if (i == 0 || phase != last) {
        names += (i == 0 ? "" : "+") + phase;
        last = phase;
      }
    }
    return names;
  }

  /// The partition into windows that charges most: one dynamic program for each cut that it may begin with.
  [[nodiscard]] std::vector<window_charge> best_partition(const machine& m, std::span<const double> seconds) const {
    const std::size_t cuts = windows.size();
    std::vector<std::vector<window_charge>> charges(cuts);
    for (std::size_t i = 0; i < cuts; ++i) {
      for (std::size_t length = 1; length <= cuts; ++length) {
        charges[i].push_back(charge_of(i, length, m, seconds));
      }
    }
    double best = -1.0;
    std::vector<window_charge> result;
    for (std::size_t anchor = 0; anchor < cuts; ++anchor) {
      std::vector<double> most(cuts + 1, 0.0);
      std::vector<std::size_t> length_of(cuts + 1, 0);
      for (std::size_t end = 1; end <= cuts; ++end) {
        most[end] = -1.0;
        for (std::size_t length = 1; length <= end; ++length) {
          const double total = most[end - length] + charges[(anchor + end - length) % cuts][length - 1].seconds;
          if (total > most[end]) {
            most[end] = total;
            length_of[end] = length;
          }
        }
      }
      if (most[cuts] > best) {
        best = most[cuts];
        result.clear();
        for (std::size_t end = cuts; end > 0; end -= length_of[end]) {
          result.push_back(charges[(anchor + end - length_of[end]) % cuts][length_of[end] - 1]);
        }
        std::reverse(result.begin(), result.end());
      }
    }
    for (window_charge& w : result) {
      w.phases = phases_of(w);
    }
    return result;
  }

  /// In the long run each resource does a whole iteration's work per iteration.
  [[nodiscard]] window_charge whole(const machine& m, std::span<const double> seconds) const {
    window_charge w;
    w.steps = static_cast<std::uint32_t>(order.steps.size());
    for (std::size_t s = 0; s < order.steps.size(); ++s) {
      (order.steps[s].where == place::device ? w.compute_seconds : w.cpu_seconds) += seconds[s];
    }
    w.bytes = required;
    w.phases = phases_of(w);
    charge_all(w, m);
    return w;
  }

  trace order;
  detail::instants layout;
  std::vector<std::vector<window>> windows;  // by first cut, then by length - 1
  link_volume required;
};

phase_bound::phase_bound(const trace& t, const machine& capacities, const bound_options& options)
    : impl_(std::make_unique<impl>(t, capacities, options)) {}
phase_bound::~phase_bound() = default;
phase_bound::phase_bound(phase_bound&&) noexcept = default;
phase_bound& phase_bound::operator=(phase_bound&&) noexcept = default;

bound_result phase_bound::evaluate(const machine& rates) const {
  std::vector<double> seconds;
  for (const trace_step& step : impl_->order.steps) {
    seconds.push_back(step.seconds);
  }
  return evaluate(rates, seconds);
}

bound_result phase_bound::evaluate(const machine& rates, std::span<const double> step_seconds) const {
  validate(rates);
  if (step_seconds.size() != impl_->order.steps.size()) {
    throw usage_error(
        fmt::format("{} durations were given for {} steps", step_seconds.size(), impl_->order.steps.size()));
  }
  bound_result result;
  result.windows = impl_->best_partition(rates, step_seconds);
  result.whole = impl_->whole(rates, step_seconds);
  for (const window_charge& w : result.windows) {
    result.seconds += w.seconds;
  }
  result.seconds = std::max(result.seconds, result.whole.seconds);
  return result;
}

link_volume phase_bound::required_bytes() const { return impl_->required; }

}  // namespace forebay::plan
