#pragma once

#include <atomic>
#include <string>

#include <forebay/base/bytes.hpp>

namespace forebay {

/// The one account of a tier's bytes: `used()` never exceeds `capacity()`, at any instant. Thread-safe, lock-free.
class ledger {
 public:
  ledger(std::string name, byte_count capacity);
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  /// Aborts (broken invariant) when bytes are still reserved: a leak.
  ~ledger();

  /// Takes `n` bytes, or nothing: false when they do not fit. Overflow-safe.
  [[nodiscard]] bool try_reserve(byte_count n) noexcept;
  /// Takes `n` bytes. \throws capacity_error naming the tier, the bytes wanted, used and the capacity.
  void reserve(byte_count n);
  /// Gives `n` reserved bytes back. Aborts when more is given back than was taken.
  void release(byte_count n) noexcept;

  [[nodiscard]] byte_count capacity() const noexcept { return capacity_; }
  [[nodiscard]] byte_count used() const noexcept { return used_.load(std::memory_order_acquire); }
  [[nodiscard]] byte_count free() const noexcept { return capacity_ - used(); }
  /// The largest `used()` ever seen.
  [[nodiscard]] byte_count peak() const noexcept { return peak_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  byte_count capacity_;
  std::atomic<byte_count> used_{0};
  std::atomic<byte_count> peak_{0};
};

}  // namespace forebay
