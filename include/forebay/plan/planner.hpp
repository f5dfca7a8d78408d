#pragma once

#include <cstdint>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

struct planner_options {
  /// How much is tried: 1 takes about half a second on one core whatever the trace's size, up to 100,000 accesses; the
  /// time is proportional. At 0 a few schedules are made.
  double effort = 1.0;
  /// Stop when the period is within this factor of `known_bound`.
  double close_enough = 1.003;
  double known_bound = 0.0;     ///< seconds; 0: none is known, and all the effort is made
  execution_model execution{};  ///< candidates are timed under it
};

struct planned {
  schedule steady;               ///< one iteration in its steady state
  evaluation predicted;          ///< of it, on the machine that it was planned for
  std::uint32_t candidates = 0;  ///< schedules that were timed
};

/// Plans one cyclic iteration: which copies stay in which tier between their uses, when the others are brought, and the
/// one order of all operations that follows. Each tier keeps the copies whose link time saved per byte and second of
/// residency is greatest, equals spread over the cycle; the rest is fetched as far ahead as memory and a lead allow.
/// What this leaves open, and at last the order itself, is searched by timing the schedules that it gives; items that
/// are accessed alike are searched as one first. Where engines are free of each other (`execution`), a host step may
/// come before device steps that are listed before it, or after later ones.
///
/// Deterministic. O(effort + accesses log accesses). \throws capacity_error naming the tier, the step, what it needs
/// and the capacity when a step's working set does not fit; saying what must pass where no schedule is found;
/// usage_error on an invalid machine or item.
[[nodiscard]] planned plan_iteration(const trace& t, const machine& m, const planner_options& options = {});

}  // namespace forebay::plan
