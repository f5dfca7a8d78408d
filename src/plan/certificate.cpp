#include <forebay/plan/certificate.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>

#include "plan/detail/alike_items.hpp"
#include "plan/detail/price_runs.hpp"

namespace forebay::plan {
namespace {

using detail::timeline;

/// A sum, and what its rounding errors are proportional to.
struct careful_sum {
  double value = 0.0;
  double magnitude = 0.0;
  double additions = 0.0;

  void add(double term, double made_of = 1.0) {
    if (term == 0.0) {
      return;  // exact
    }
    value += term;
    magnitude += std::abs(term);
    additions += made_of;
  }
  /// Each of n additions errs by half an epsilon of a partial sum at most, none of which exceeds the magnitude (up to
  /// the same error); the factor 2 covers that, the products and the sum of the magnitude itself.
  [[nodiscard]] double rounded_down() const {
    return value - 2.0 * (additions + 4.0) * std::numeric_limits<double>::epsilon() * magnitude;
  }
};

/// The cheapest paths of all items, each times its size. (Sums of sizes are exact up to 2^53 bytes.)
void add_items(careful_sum& sum, const trace& t, const machine& m, const timeline& time,
               const std::vector<detail::price_run>& runs, bool items_move_whole) {
  const byte_count capacity = time.clock == place::device ? m.device_capacity : m.host_capacity;
  const detail::alike_items items = detail::group_alike(t, time, capacity, items_move_whole);
  detail::item_path path(time, runs);
  for (std::size_t g = 0; g < items.stories.size(); ++g) {
    sum.add(items.bytes[g] * path.cheapest(*items.stories[g], items.shut_by[g]), 2.0);
  }
  sum.additions += static_cast<double>(path.longest_sum());
}

/// The other engine's steps, each at the least price of its time where it may run. Neither end of these ranges ever
/// falls from one step to the next: `lowest` has the sub-slots of the range that no later one in it undercuts.
void add_other_engine(careful_sum& sum, const trace& t, const timeline& time, const std::vector<double>& cpu) {
  const double least = *std::min_element(cpu.begin(), cpu.end());
  const auto price = [&](std::int64_t k) {
    return cpu[static_cast<std::size_t>((k + 4 * time.sub_slots) % time.sub_slots)];
  };
  std::deque<std::int64_t> lowest;
  std::int64_t next = time.tied ? time.starts.front().first : 0;
  for (std::size_t h = 0; h < time.floating_steps.size(); ++h) {
    for (; time.tied && next <= time.starts[h].last; ++next) {
      while (!lowest.empty() && price(lowest.back()) >= price(next)) {
        lowest.pop_back();
      }
      lowest.push_back(next);
    }
    while (time.tied && lowest.front() < time.starts[h].first) {
      lowest.pop_front();
    }
    sum.add(t.steps[time.floating_steps[h]].seconds * (time.tied ? price(lowest.front()) : least));
  }
}

/// What is paid for capacity, less what workspaces take of it, and for the time of links while steps run.
void add_supply(careful_sum& sum, const trace& t, const machine& m, const timeline& time, const certificate& c) {
  const std::vector<double>& own = time.clock == place::device ? c.device : c.host;
  for (std::size_t k = 0; k < c.h2d.size(); ++k) {
    const trace_step& step = t.steps[time.clock_steps[k / 2]];
    sum.add(-c.device[k] * static_cast<double>(m.device_capacity));
    sum.add(-c.host[k] * static_cast<double>(m.host_capacity));
    sum.add(own[k] * static_cast<double>(workspace_room(step)));
    if (k % 2 == 0) {
      sum.add(-step.seconds * detail::charge(m, c, k));
    }
  }
}

}  // namespace

std::size_t sub_slot_count(const trace& t) {
  const auto of_device =
      std::count_if(t.steps.begin(), t.steps.end(), [](const trace_step& s) { return s.where == place::device; });
  return 2 * (of_device > 0 ? static_cast<std::size_t>(of_device) : t.steps.size());
}

certificate no_prices(const trace& t, const machine& m) {
  const std::vector<double> none(sub_slot_count(t), 0.0);
  const std::vector<std::vector<double>> paths(m.storage.size(), none);
  return {none, none, none, paths, paths, none, none};
}

double check_certificate(const trace& t, const machine& m, const certificate& c, bool items_move_whole,
                         const execution_model& model) {
  validate(m);
  const timeline time = detail::timeline_of(t, model, m.device_capacity);
  detail::check_prices(m, c, static_cast<std::size_t>(time.sub_slots));
  careful_sum proved;
  for (const std::uint32_t step : time.clock_steps) {
    proved.add(t.steps[step].seconds);
  }
  if (time.sub_slots == 0) {
    return 0.0;
  }
  careful_sum priced;  // linear in the prices
  add_supply(priced, t, m, time, c);
  add_items(priced, t, m, time, detail::price_runs(m, c), items_move_whole);
  add_other_engine(priced, t, time, c.cpu);
  double most = 1.0;
  for (std::size_t k = 1; k < c.h2d.size(); k += 2) {
    most = std::max(most, detail::charge(m, c, k) * (1.0 + 8.0 * std::numeric_limits<double>::epsilon()));
  }
  proved.add(priced.value / most, priced.additions);
  proved.magnitude += priced.magnitude;
  return proved.rounded_down();
}

}  // namespace forebay::plan
