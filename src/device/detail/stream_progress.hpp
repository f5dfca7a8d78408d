#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>

#include <forebay/base/clock.hpp>
#include <forebay/device/device.hpp>

namespace forebay::detail {

/// How far a stream has come: how many operations it was given and how many have passed. Others may block on it, and
/// keep it for longer than the stream lives. Thread-safe.
class stream_progress {
 public:
  [[nodiscard]] stream_point enqueued() const noexcept { return enqueued_.load(std::memory_order_acquire); }
  [[nodiscard]] bool passed(stream_point point) const noexcept {
    return completed_.load(std::memory_order_acquire) >= point;
  }
  [[nodiscard]] bool idle() const noexcept { return passed(enqueued()); }
  /// When the last operation ended, or the stream was made.
  [[nodiscard]] time_point last_end() const noexcept {
    return time_point(duration(last_end_.load(std::memory_order_acquire)));
  }

  /// One more operation; the caller holds the stream's lock.
  void add() noexcept { enqueued_.fetch_add(1, std::memory_order_acq_rel); }

  /// One operation has ended; called by the stream's one worker.
  void complete(time_point now) noexcept {
    const std::scoped_lock lock(mutex_);
    last_end_.store(now.time_since_epoch().count(), std::memory_order_release);
    const stream_point done = completed_.load(std::memory_order_relaxed) + 1;
    completed_.store(done, std::memory_order_release);
    if (done >= nearest_target_) {
      nearest_target_ = none;
      changed_.notify_all();
    }
  }

  /// Blocks until `point` has passed.
  void block_until(stream_point point) const {
    if (passed(point)) {
      return;
    }
    std::unique_lock lock(mutex_);
    while (!passed(point)) {
      nearest_target_ = std::min(nearest_target_, point);
      changed_.wait(lock);
    }
  }

 private:
  static constexpr stream_point none = std::numeric_limits<stream_point>::max();

  std::atomic<stream_point> enqueued_{0};
  std::atomic<stream_point> completed_{0};
  std::atomic<duration::rep> last_end_{std::chrono::steady_clock::now().time_since_epoch().count()};

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable stream_point nearest_target_ = none;  // the least point that anyone is blocked on: spares needless wake-ups
};

}  // namespace forebay::detail
