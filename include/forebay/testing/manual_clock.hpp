#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <forebay/base/clock.hpp>

namespace forebay::testing {

/// A clock that only moves when it is told to. Thread-safe.
class manual_clock final : public clock {
 public:
  explicit manual_clock(time_point start = time_point{}) : now_(start) {}

  [[nodiscard]] time_point now() const noexcept override;
  /// Blocks until another thread has moved the clock to `deadline` or beyond.
  void sleep_until(time_point deadline) override;

  /// Moves the clock forward and wakes who has slept long enough. \throws usage_error when `by` is negative.
  void advance(duration by);
  /// Blocks until at least `n` threads are inside `sleep_until`, so that a test can move the clock past them.
  void wait_for_sleepers(std::size_t n);
  [[nodiscard]] std::size_t sleepers() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::condition_variable slept_;
  time_point now_;
  std::size_t sleepers_ = 0;
};

}  // namespace forebay::testing
