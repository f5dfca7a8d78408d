#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>

namespace forebay::detail {

/// One direction of an emulated bus. Copies take it in turns, first come first served; with a rate, each takes
/// bytes / rate of wall time. Its own clock is exact: while copies queue up, each starts when the one before was due to
/// end, not when a late wake-up let it, so that a busy link keeps its rate without drift. Thread-safe.
class link {
 public:
  explicit link(byte_count bytes_per_second) : rate_(bytes_per_second) {}

  [[nodiscard]] bool rated() const noexcept { return rate_ != 0; }
  /// Copies, and returns when the copy is due to have ended (now, when the link has no rate). It starts at `ready`, or
  /// when the link becomes free.
  [[nodiscard]] time_point transfer(std::byte* to, const std::byte* from, byte_count bytes, time_point ready);

 private:
  [[nodiscard]] duration cost(byte_count bytes) const;

  const byte_count rate_;
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t turn_ = 0;
  time_point free_at_{};
};

}  // namespace forebay::detail
