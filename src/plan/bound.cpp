#include <forebay/plan/bound.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "plan/detail/bound_proposals.hpp"
#include "plan/detail/timeline.hpp"

namespace forebay::plan {
namespace {

using detail::timeline;

/// Of all proposals the one that proves most.
class best_proof {
 public:
  best_proof(const trace& t, const machine& m, const bound_search_options& options)
      : trace_(t), machine_(m), options_(options) {}

  void consider(certificate prices, std::vector<bound_window> windows) {
    const double seconds = check_certificate(trace_, machine_, prices, options_.items_move_whole, options_.execution);
    if (!found_ || seconds > best_.seconds) {
      best_ = {seconds, std::move(prices), std::move(windows)};
      found_ = true;
    }
  }
  [[nodiscard]] certified_bound take() { return std::move(best_); }

 private:
  const trace& trace_;
  const machine& machine_;
  const bound_search_options& options_;
  bool found_ = false;
  certified_bound best_;
};

/// The iteration as a whole, charged for the steps of the one engine or of the other.
bound_window whole(const trace& t, const timeline& time, resource charged) {
  bound_window w{0, 0, charged, 0.0};
  for (const std::uint32_t s : charged == resource::compute ? time.clock_steps : time.floating_steps) {
    w.seconds += t.steps[s].seconds;
  }
  return w;
}

}  // namespace

certified_bound find_bound(const trace& t, const machine& m, const bound_search_options& options) {
  validate(m);
  if (options.most_cuts.value_or(2) < 2) {
    throw usage_error(fmt::format("most_cuts is {}; two are the least", *options.most_cuts));
  }
  const timeline time = detail::timeline_of(t, options.execution, m.device_capacity);
  best_proof best(t, m, options);
  best.consider(no_prices(t, m), {whole(t, time, resource::compute)});
  if (time.sub_slots == 0) {
    return best.take();
  }
  certificate other_engine = no_prices(t, m);
  std::fill(other_engine.cpu.begin(), other_engine.cpu.end(), 1.0);
  best.consider(std::move(other_engine), {whole(t, time, resource::cpu)});
  for (const bool whole_items : {false, true}) {  // what is proved of divisible items holds for whole ones
    if (whole_items && !options.items_move_whole) {
      break;
    }
    const detail::bound_proposals proposals(t, m, time, {whole_items, options.most_cuts});
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      detail::bound_proposal p = proposals.make(i);
      best.consider(std::move(p.prices), std::move(p.windows));
    }
  }
  return best.take();
}

std::string describe(const trace& t, const bound_window& w) {
  const timeline time = detail::timeline_of(t);
  const auto phase = [&](std::int64_t sub_slot) {
    const auto n = time.sub_slots;
    return t.steps[time.clock_steps[static_cast<std::size_t>((sub_slot + n) % n / 2)]].phase;
  };
  const std::string from = phase(w.first_boundary);
  const std::string to = phase(w.end_boundary - 1);
  return fmt::format("{} {:.4g} s {}", to_string(w.charged), w.seconds,
                     from == to && w.first_boundary != w.end_boundary ? "in " + from : "from " + from + " to " + to);
}

double start_up_bound(const trace& t, const machine& m) {
  validate(m);
  double device = 0.0;
  double host = 0.0;
  double cold = 0.0;
  std::vector<bool> seen(t.item_bytes.size(), false);
  static_cast<void>(detail::timeline_of(t));  // refuses what is no trace
  for (const trace_step& step : t.steps) {
    (step.where == place::device ? device : host) += step.seconds;
    for (const item_access& a : step.accesses) {
      if (!seen[a.item] && needs_contents(a.how)) {
        cold += static_cast<double>(t.item_bytes[a.item]);
      }
      seen[a.item] = true;
    }
  }
  const double rate = storage_read_rate(m);
  return std::max({device, host, m.storage.empty() ? 0.0 : cold / rate}) * (1.0 - 1e-12);
}

}  // namespace forebay::plan
