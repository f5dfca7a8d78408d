#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/order.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// A part of a stall, and the operation that ran then and that the waiting step could not start without.
struct stall_cause {
  double start = 0.0;
  double finish = 0.0;
  std::optional<std::size_t> operation;  ///< none: the times name nobody (they are no steady state's)
};

/// A time in which no step runs on an engine, because the next one waits. In seconds, on the axis of
/// `evaluation::times`; a stall before an iteration's first step may begin below zero.
struct stall {
  std::size_t step = 0;  ///< the operation that waits; it starts when the stall ends
  double start = 0.0;
  double finish = 0.0;
  std::vector<stall_cause> causes;  ///< latest first, without gaps
};

/// The stalls of one steady iteration on the device's or the host's engine, in the schedule's order, and what was
/// waited for: a critical path, walked back from the step's start. Whatever ends at that instant was waited for: first
/// what concerns the step's own items (the latest input), else what is before it on its engine, else what gave memory
/// back; the same then holds for that operation's start, until the engine was busy again. Transfers that follow each
/// other thus each have their part: a copy to the device, and before it the read from storage.
/// O(operations log operations + parts x items of a step). \throws usage_error when the evaluation is not of the
/// schedule.
[[nodiscard]] std::vector<stall> find_stalls(const trace& t, const schedule& s, const evaluation& e, place where);

}  // namespace forebay::plan
