#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

#include "engine/background_planner.hpp"
#include "engine/plan_memory.hpp"

namespace forebay::detail {

/// What an engine knows of schedules for its order: what was planned, for which durations and rates, what came of it.
struct planning_state {
  plan::trace trace;                              ///< the order over blocks, without workspaces
  std::array<byte_count, 2> largest_workspace{};  ///< on the device and on the host
  background_planner planner;
  std::vector<double> step_seconds;  ///< the durations and rates that were planned for last; empty: none yet
  plan::machine rates;
  std::uint64_t orders = 0;         ///< set so far
  std::uint64_t planned_order = 0;  ///< the one that is being planned for
  plan::evaluation timed;           ///< the schedule that is followed, with durations and rates as they are now
  double bound_seconds = 0.0;       ///< certified, for what was planned for last; 0: unknown
  double last_seconds = 0.0;        ///< of the last iteration
  std::uint64_t made = 0;           ///< schedules, so far
  std::uint64_t adopted = 0;
  plan_memory memory;
};

}  // namespace forebay::detail
