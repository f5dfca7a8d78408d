#pragma once

#include <thread>

#include <forebay/base/function.hpp>

namespace forebay::io {

/// Starts a thread of the library: named (15 characters at most) for debuggers, and with every signal blocked, so that
/// the program's handlers run on the program's threads. \throws io_error when the system gives no thread.
[[nodiscard]] std::thread start_service_thread(const char* name, unique_function<void()> body);

/// Knows whether this process is the one that built the object: after a fork the child has the object but none of its
/// threads, so it must neither join nor remove anything.
class process_mark {
 public:
  process_mark() noexcept;
  [[nodiscard]] bool same_process() const noexcept;

 private:
  int pid_;
};

}  // namespace forebay::io
