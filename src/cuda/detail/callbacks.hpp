#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include <forebay/base/function.hpp>

namespace forebay::detail {

/// The callbacks that a stream still owes, in order. Each is called exactly once, by whoever comes first: the run-time
/// in the usual course, the fallback thread when the stream has failed and the run-time no longer can. Thread-safe.
class callback_list {
 public:
  using ticket = std::uint64_t;
  static constexpr ticket all = ~ticket{0};

  /// `behind`: the newest point of the stream in front of it.
  [[nodiscard]] ticket add(unique_function<void()> callback, std::uint64_t behind);
  /// Takes the last one added back uncalled, when the run-time has refused it.
  void withdraw(ticket t);
  /// Calls all that are due up to and including `last`, in order. Callbacks don't throw.
  void run_through(ticket last) noexcept;
  void wait_empty();
  /// Waits for the callbacks in front of a point.
  void wait_before(std::uint64_t point);

 private:
  struct entry {
    ticket number;
    std::uint64_t behind;
    unique_function<void()> call;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<entry> entries_;
  ticket next_ = 0;
  bool running_ = false;
  std::uint64_t running_behind_ = 0;
};

/// A thread that starts with its first task; runs them in order, and ends after the last.
class fallback_thread {
 public:
  fallback_thread() = default;
  ~fallback_thread();
  fallback_thread(const fallback_thread&) = delete;
  fallback_thread& operator=(const fallback_thread&) = delete;

  void post(unique_function<void()> task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<unique_function<void()>> tasks_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace forebay::detail
