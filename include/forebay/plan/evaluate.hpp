#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// When an operation runs, in seconds since the first operation of its iteration started.
struct operation_times {
  double start = 0.0;
  double finish = 0.0;
};

/// How whoever runs the steps holds them back, beyond what the order and the machine do.
struct execution_model {
  /// One thread acquires the steps in the trace's order and runs the host steps itself. It goes on when a device step
  /// has been granted (its memory is given, its contents are there or on their way) and when a host step has ended; a
  /// host step starts when the thread comes to it.
  bool single_caller = false;
  /// An iteration starts when all steps of the previous one have ended (transfers may go on).
  bool iterations_join = false;
  /// Phases whose first step starts when all steps before it have ended.
  std::vector<std::string> joining_phases{};
};

/// What a schedule takes in its steady state.
struct evaluation {
  bool complete = false;  ///< false: it cannot run, as `obstacle` says; all else is zero
  std::string obstacle;
  double period = 0.0;                 ///< seconds per iteration, in the long run
  std::vector<operation_times> times;  ///< by operation, of one steady iteration
  link_volume moved;                   ///< per iteration
};

/// Times a schedule under the meaning that plan::schedule gives it: device steps and host steps are independent but for
/// their conflicts, every engine takes its operations in the schedule's order, memory is granted in that order as soon
/// as what was released suffices. A drive that is half duplex has one engine a path, and each direction takes its own
/// rate.
///
/// One max-plus pass per iteration: an operation's start is the greatest of the times that it waits for. Iterations are
/// repeated until every operation starts the same time later than in the one before, or, where starts alternate, until
/// the mean over the last iterations is taken. O(iterations x operations log operations). Every start is monotone in
/// earlier finishes, so a schedule whose steps and links take no longer than the machine says ends no later.
/// \throws usage_error when the schedule names a step, an item or a path that does not exist, or sizes don't match.
[[nodiscard]] evaluation evaluate(const trace& t, const machine& m, const schedule& s,
                                  const execution_model& model = {});

}  // namespace forebay::plan
