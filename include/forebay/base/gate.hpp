#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace forebay {

/// Counts work in flight so that an owner can drain before it is destroyed. Thread-safe.
///
/// `close()` refuses new entries and returns once the last one has left.
class gate {
 public:
  /// False once the gate is closed: the work must not start.
  [[nodiscard]] bool enter() {
    const std::scoped_lock lock(mutex_);
    if (closed_) {
      return false;
    }
    ++inside_;
    return true;
  }

  void leave() noexcept {
    // Notified under the lock: the closer may destroy the gate as soon as it can take the mutex.
    const std::scoped_lock lock(mutex_);
    if (--inside_ == 0) {
      empty_.notify_all();
    }
  }

  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  std::uint64_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace forebay
