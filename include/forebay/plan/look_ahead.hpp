#pragma once

#include <cstdint>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// The fixed rule that offloading engines commonly follow, to compare schedules with: what persists is streamed through
/// storage, whatever room the host has. Before a step runs, the items of it and of the next `steps_ahead` steps are
/// being brought; a copy of an item that is not used again within as many steps leaves, changed ones to storage. Items
/// that live within the iteration (activations, gradients) stay where there is room for them. Where memory is too small
/// to bring so much ahead, less is brought ahead.
///
/// Deterministic. O(accesses log accesses). Errors as plan_iteration().
[[nodiscard]] planned streamed_look_ahead(const trace& t, const machine& m, std::uint32_t steps_ahead = 2,
                                          const execution_model& execution = {});

}  // namespace forebay::plan
