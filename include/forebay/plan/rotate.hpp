#pragma once

#include <cstddef>

#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// The same cyclic schedule, written down from its operation `first` on, with the copies as they are before that one.
/// O(operations + accesses). \throws usage_error when there is no such operation.
[[nodiscard]] schedule rotated(const trace& t, const schedule& s, std::size_t first);

/// The same, beginning right after the last of its operations that lies before the trace's first step: where an
/// iteration begins for whoever acquires the steps in the trace's order. Unchanged without steps.
[[nodiscard]] schedule from_first_step(const trace& t, const schedule& s);

/// Whether the steps stand in the trace's order, as the schedule is written down.
[[nodiscard]] bool steps_in_order(const schedule& s);

}  // namespace forebay::plan
