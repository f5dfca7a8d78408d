#include "engine/placed_schedule.hpp"

#include <algorithm>
#include <utility>

#include <forebay/base/error.hpp>
#include <forebay/plan/look_ahead.hpp>
#include <forebay/plan/placement.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/rotate.hpp>
#include <forebay/plan/verify.hpp>

namespace forebay::detail {
namespace {

constexpr int attempts = 8;

constexpr std::uint32_t steps_ahead = 2;  // of the fixed rule

std::optional<plan::planned> fixed_rule(const planning_problem& problem, const plan::machine& m) {
  try {
    return plan::streamed_look_ahead(problem.trace, m, steps_ahead, problem.execution);
  } catch (const capacity_error&) {
    return std::nullopt;
  }
}

std::optional<plan::planned> plan_once(const planning_problem& problem, const plan::machine& m, int attempt) {
  if (problem.planner == planner_kind::look_ahead) {
    return fixed_rule(problem, m);
  }
  plan::planner_options options;
  options.effort = problem.effort * (attempt < 2 ? 1.0 : 0.3);
  options.execution = problem.execution;
  try {
    return plan::plan_iteration(problem.trace, m, options);
  } catch (const capacity_error&) {
    return std::nullopt;
  }
}

/// The capacity with which to try again when what was planned for `capacity` takes `height`.
byte_count smaller(byte_count capacity, byte_count height) {
  constexpr double more = 0.99;  // the next schedule may leave gaps of its own
  const double ratio = more * static_cast<double>(capacity) / static_cast<double>(height);
  return static_cast<byte_count>(static_cast<double>(capacity) * ratio);
}

placed_schedule with_places(const planning_problem& problem, plan::planned&& planned,
                            const std::array<plan::placement, 2>& tiers) {
  placed_schedule result;
  const std::size_t operations = planned.steady.operations.size();
  std::vector<std::vector<planned_place>> by_operation(operations);
  for (const tier t : {tier::device, tier::host}) {
    const byte_count base = t == tier::device ? problem.device.before : problem.host.before;
    for (const plan::residency& r : tiers[t == tier::device ? 0 : 1].stays) {
      const planned_place p{t, r.index, base + r.offset};
      const plan::copies there = t == tier::device ? plan::copies::device : plan::copies::host;
      const bool at_start = plan::has(planned.steady.at_start[r.index], there);
      if (at_start && (r.first == 0 || r.first + r.length > operations)) {
        result.at_start.push_back(p);
      }
      if (!at_start || r.first != 0) {  // otherwise it is there before the first operation, which takes nothing for it
        by_operation[r.first].push_back(p);
      }
    }
  }
  for (std::size_t i = 0; i < operations; ++i) {
    result.first_place.push_back(static_cast<std::uint32_t>(result.places.size()));
    result.places.insert(result.places.end(), by_operation[i].begin(), by_operation[i].end());
  }
  result.first_place.push_back(static_cast<std::uint32_t>(result.places.size()));
  result.steady = std::move(planned.steady);
  result.predicted = std::move(planned.predicted);
  return result;
}

bool needs_transfers(const plan::schedule& s) {
  return std::any_of(s.operations.begin(), s.operations.end(),
                     [](const plan::operation& o) { return o.what == plan::operation::kind::transfer; });
}

}  // namespace

std::optional<placed_schedule> make_schedule(const planning_problem& problem) {
  const byte_count device_reserve = problem.device.before + problem.device.after;
  const byte_count host_reserve = problem.host.before + problem.host.after;
  if (device_reserve > problem.machine.device_capacity || host_reserve > problem.machine.host_capacity) {
    return std::nullopt;
  }
  const byte_count device_room = problem.machine.device_capacity - device_reserve;
  const byte_count host_room = problem.machine.host_capacity - host_reserve;
  const bool host_is_home = problem.machine.storage.empty();  // every block has its own place there for good
  plan::machine m = problem.machine;
  m.device_capacity = device_room;
  m.host_capacity = host_room;
  for (int i = 0; i < attempts; ++i) {
    std::optional<plan::planned> planned = plan_once(problem, m, i);
    if (!planned || !needs_transfers(planned->steady)) {
      return std::nullopt;
    }
    planned->steady = plan::from_first_step(problem.trace, planned->steady);
    if (!plan::steps_in_order(planned->steady) || plan::verify(problem.trace, m, planned->steady)) {
      return std::nullopt;
    }
    std::array<plan::placement, 2> tiers{
        plan::place_in(plan::copies::device, problem.trace, planned->steady, problem.granularity), plan::placement{}};
    if (!host_is_home) {
      tiers[1] = plan::place_in(plan::copies::host, problem.trace, planned->steady, problem.granularity);
    }
    if (tiers[0].height <= device_room && tiers[1].height <= host_room) {
      return with_places(problem, std::move(*planned), tiers);
    }
    if (tiers[0].height > device_room) {
      m.device_capacity = smaller(m.device_capacity, tiers[0].height);
    }
    if (tiers[1].height > host_room) {
      m.host_capacity = smaller(m.host_capacity, tiers[1].height);
    }
  }
  return std::nullopt;
}

}  // namespace forebay::detail
