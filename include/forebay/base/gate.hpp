#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace forebay {

/// Counts work in flight so that an owner can drain before it is destroyed. Thread-safe.
///
/// `close()` refuses new entries and returns once the last one has left. Entering and leaving an open gate takes no
/// lock.
class gate {
 public:
  /// Counts `entries`, each of which leaves by itself. False once the gate is closed: the work must not start.
  [[nodiscard]] bool enter(unsigned entries = 1) noexcept {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    do {
      if ((state & closed_bit) != 0) {
        return false;
      }
    } while (!state_.compare_exchange_weak(state, state + entries * one_entry, std::memory_order_acq_rel));
    return true;
  }

  void leave() noexcept {
    if (state_.fetch_sub(one_entry, std::memory_order_acq_rel) != (one_entry | closed_bit)) {
      return;
    }
    // The last one of a closed gate. Notified under the lock: the closer may destroy the gate as soon as it can take
    // the mutex and sees that we are done with everything else.
    const std::scoped_lock lock(mutex_);
    empty_ = true;
    emptied_.notify_all();
  }

  void close() {
    const std::uint64_t before = state_.fetch_or(closed_bit, std::memory_order_acq_rel);
    std::unique_lock lock(mutex_);
    if (before == 0) {
      empty_ = true;  // nobody is inside, and nobody can enter
    }
    emptied_.wait(lock, [this] { return empty_; });
  }

 private:
  static constexpr std::uint64_t closed_bit = 1;
  static constexpr std::uint64_t one_entry = 2;

  std::atomic<std::uint64_t> state_{0};
  std::mutex mutex_;
  std::condition_variable emptied_;
  bool empty_ = false;
};

}  // namespace forebay
