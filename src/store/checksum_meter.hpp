#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>

namespace forebay::store_detail {

/// What hashing costs: every so-manieth hash is timed, and the time per byte goes for all bytes. Thread-safe.
class checksum_meter {
 public:
  template <typename Hash>
  std::uint64_t measure(byte_count bytes, Hash&& hash) noexcept {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (count_.fetch_add(1, std::memory_order_relaxed) % one_in != 0) {
      return hash();
    }
    const time_point start = std::chrono::steady_clock::now();
    const std::uint64_t sum = hash();
    const duration took = std::chrono::steady_clock::now() - start;
    timed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    timed_nanoseconds_.fetch_add(
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()),
        std::memory_order_relaxed);
    return sum;
  }

  [[nodiscard]] double seconds() const noexcept {
    const auto timed = static_cast<double>(timed_bytes_.load(std::memory_order_relaxed));
    const auto all = static_cast<double>(bytes_.load(std::memory_order_relaxed));
    const auto nanoseconds = static_cast<double>(timed_nanoseconds_.load(std::memory_order_relaxed));
    return timed > 0 ? all / timed * nanoseconds * 1e-9 : 0.0;
  }

 private:
  static constexpr std::uint64_t one_in = 8;

  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> timed_bytes_{0};
  std::atomic<std::uint64_t> timed_nanoseconds_{0};
};

}  // namespace forebay::store_detail
