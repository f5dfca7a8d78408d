#pragma once

#include <cstdint>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

struct planner_options {
  /// So many candidate schedules are built and timed at most.
  std::uint32_t candidates = 160;
  /// Stop when the period is within this factor of `known_bound`.
  double close_enough = 1.003;
  double known_bound = 0.0;     ///< seconds; 0: none is known, and all candidates are tried
  execution_model execution{};  ///< candidates are timed under it
};

struct planned {
  schedule steady;               ///< one iteration in its steady state
  evaluation predicted;          ///< of it, on the machine that it was planned for
  std::uint32_t candidates = 0;  ///< that were built and timed
};

/// Plans one cyclic iteration: which copies stay in which tier between their uses, when the others are brought, and the
/// one order of all operations that follows. Each tier keeps the copies whose link time saved per byte and second of
/// residency is greatest, equals spread over the cycle; the rest is fetched as far ahead as memory and a lead allow.
/// Rules and leads of both tiers are searched by timing the schedules that they give. Deterministic. O(candidates x
/// accesses log accesses). \throws capacity_error when a step's working set, with the copies that must pass, does not
/// fit a tier; usage_error on an invalid machine or item.
[[nodiscard]] planned plan_iteration(const trace& t, const machine& m, const planner_options& options = {});

}  // namespace forebay::plan
