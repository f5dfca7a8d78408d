#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// What is wrong with a schedule, and where.
struct breach {
  std::size_t operation = 0;  ///< of `schedule::operations`; their number when it concerns the whole
  std::optional<item_index> item;
  std::optional<std::uint32_t> step;
  std::string what;  ///< one sentence
};

/// The first rule that the schedule breaks, or none: then any execution as `schedule` describes it, whatever the
/// durations, comes to its end, exceeds no capacity and computes what the order says.
///
/// Replays the operations one after the other from `at_start`, symbolically. That suffices: an execution waits only
/// for operations that are earlier in the total order, and the memory granted never exceeds what a prefix of the
/// replay holds. The rules: each step once, in cyclic program order on each engine, and conflicting steps of the two
/// engines in their listed order (for one whole-iteration lead between the engines); what a step needs is valid in its
/// own tier; what it creates and its workspace are reserved at once; transfers have a valid source, carry only contents
/// that a later step needs, go where there is no copy, and read storage on the path that was written; drops end one
/// copy that is there, never the last one of needed contents; no capacity is exceeded; the end is the start.
/// An item that no step accesses counts as needed.
///
/// O(operations + accesses). Shares nothing with what makes or evaluates schedules.
/// \throws usage_error when the trace itself has unknown items, or an item twice in a step.
[[nodiscard]] std::optional<breach> verify(const trace& t, const machine& m, const schedule& s);

}  // namespace forebay::plan
