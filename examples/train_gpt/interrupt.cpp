#include "interrupt.hpp"

namespace train_gpt {
namespace {

// A signal handler has no other way to reach the program.
volatile std::sig_atomic_t noted_signal = 0;

extern "C" void note_signal(int signal) { noted_signal = signal; }

void install(int signal, struct sigaction& old) {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &old);
}

}  // namespace

interrupt_guard::interrupt_guard() {
  noted_signal = 0;
  install(SIGINT, old_interrupt_);
  install(SIGTERM, old_terminate_);
  install(SIGHUP, old_hangup_);
  // A reader of our output that goes away is no reason to leave a run's files behind.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  sigaction(SIGPIPE, &ignore, &old_pipe_);
}

interrupt_guard::~interrupt_guard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  sigaction(SIGHUP, &old_hangup_, nullptr);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
}

void throw_if_interrupted() {
  if (noted_signal != 0) {
    throw interrupted{noted_signal};
  }
}

}  // namespace train_gpt
