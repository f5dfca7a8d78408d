#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <forebay/engine/options.hpp>
#include <forebay/memory/tier.hpp>
#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::detail {

/// A copy whose stay in a tier begins with an operation: the place that the plan keeps for it.
struct planned_place {
  tier where = tier::device;
  std::uint32_t block = 0;
  byte_count offset = 0;
};

/// A schedule that has been proved to run, with an address for every copy that it brings or lets a step create.
/// Immutable.
struct placed_schedule {
  plan::schedule steady;
  plan::evaluation predicted;
  std::vector<std::uint32_t> first_place;  ///< operation -> index in `places`; one more at the end
  std::vector<planned_place> places;
  std::vector<planned_place> at_start;  ///< of the copies that are there before the first operation
};

/// What the engine keeps for itself in a tier, so that the planner may not use it.
struct tier_reserve {
  byte_count before = 0;  ///< at the start of the tier: staging
  byte_count after = 0;   ///< at its end: the workspace of steps
};

struct planning_problem {
  planner_kind planner = planner_kind::search;
  plan::trace trace;      ///< without workspaces, which are in the reserves
  plan::machine machine;  ///< capacities as they are, with nothing taken off
  tier_reserve device;
  tier_reserve host;
  byte_count granularity = 4096;  ///< addresses are multiples of it
  plan::execution_model execution;
  double effort = 1.0;  ///< of the planner
};

/// The machine that a bound is found for: whoever plans has all the memory but what the engine's staging takes.
[[nodiscard]] inline plan::machine bounded_machine(const planning_problem& problem) {
  plan::machine m = problem.machine;
  m.device_capacity -= std::min(m.device_capacity, problem.device.before);
  m.host_capacity -= std::min(m.host_capacity, problem.host.before);
  return m;
}

/// Plans, verifies and places. Where a placement comes out higher than the tier, by fragmentation, it is planned again
/// for less. Nothing when the order doesn't fit that way, or when it needs no transfer at all.
[[nodiscard]] std::optional<placed_schedule> make_schedule(const planning_problem& problem);

}  // namespace forebay::detail
