#pragma once

#include <csignal>

namespace train_gpt {

/// Thrown between steps after a signal asked the run to end.
struct interrupted {
  int signal = 0;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of killing the process (a second one kills as usual),
/// and SIGPIPE is ignored. At most one at a time.
class interrupt_guard {
 public:
  interrupt_guard();
  ~interrupt_guard();
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
  struct sigaction old_hangup_ {};
  struct sigaction old_pipe_ {};
};

/// \throws interrupted when a signal has come.
void throw_if_interrupted();

}  // namespace train_gpt
