#include <forebay/io/service_thread.hpp>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include <forebay/base/error.hpp>

namespace forebay::io {
namespace {

/// A new thread inherits the mask of its creator.
class all_signals_blocked {
 public:
  all_signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~all_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  all_signals_blocked(const all_signals_blocked&) = delete;
  all_signals_blocked& operator=(const all_signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::thread start_service_thread(const char* name, unique_function<void()> body) {
  const all_signals_blocked blocked;
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& failure) {
    throw io_error(std::string("cannot start the thread ") + name + ": " + describe_errno(failure.code().value()),
                   failure.code().value());
  }
}

process_mark::process_mark() noexcept : pid_(::getpid()) {}
bool process_mark::same_process() const noexcept { return ::getpid() == pid_; }

}  // namespace forebay::io
