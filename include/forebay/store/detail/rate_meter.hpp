#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::store_detail {

/// What is known of one path's speed. Rates in bytes per second, 0 while unknown; bytes of the recent past, for the
/// mix.
struct measured_rate {
  double read = 0;
  double write = 0;
  double bytes_read = 0;
  double bytes_written = 0;
};

/// A window ends when it has both; it is then long enough to mean something.
inline constexpr unsigned rate_window_transfers = 4;
inline constexpr duration rate_window_time = std::chrono::milliseconds(30);

/// Completions that come this close together are one: the backend merges neighbours.
inline constexpr duration rate_burst_time = std::chrono::microseconds(50);

/// Measures one path while it really has work queued. The clock runs from a completion that leaves another transfer in
/// flight to the first one that does not: in between the path always had something to do, and what completed there is
/// what it did in that time. Windows of this are averaged exponentially, apart for reads and writes, so that a phase
/// that only writes says nothing about reads; a window with both scales both rates to what the mix took. Where
/// transfers come singly, their rate is a lower bound: it raises the estimate and never lowers it.
///
/// A transfer costs one uncontended lock at its start and one at its end; the clock is read where the queue forms or
/// empties and where a window may end. Thread-safe. `now()` gives the time.
class rate_meter {
 public:
  template <typename Now>
  void begin(Now&& now) noexcept {
    const std::scoped_lock lock(mutex_);
    if (++in_flight_ == 1) {
      any_.since = now();
    }
  }

  /// `bytes`: what has moved, also when the transfer failed.
  template <typename Now>
  void end(io::operation_kind kind, byte_count bytes, Now&& now) noexcept {
    const std::scoped_lock lock(mutex_);
    any_.add(kind, bytes);
    --in_flight_;
    if (in_flight_ == 0 || clock_ != running || queued_.worth_a_look()) {
      look(kind, bytes, now());
    } else {
      queued_.add(kind, bytes);
    }
  }

  [[nodiscard]] measured_rate rate() const noexcept {
    const std::scoped_lock lock(mutex_);
    return known_;
  }

 private:
  struct window {
    time_point since{};
    duration busy{};
    unsigned transfers = 0;
    unsigned look_at = rate_window_transfers;
    double bytes_read = 0;
    double bytes_written = 0;

    void add(io::operation_kind kind, byte_count bytes) noexcept {
      (kind == io::operation_kind::read ? bytes_read : bytes_written) += static_cast<double>(bytes);
      ++transfers;
    }
    [[nodiscard]] bool worth_a_look() const noexcept { return transfers + 1 >= look_at; }
    [[nodiscard]] bool full() const noexcept { return transfers >= rate_window_transfers && busy >= rate_window_time; }
    void pass(time_point now) noexcept {
      busy += std::max(now, since) - since;
      since = now;
    }
    void restart(time_point now) noexcept {
      *this = {};
      since = now;
    }
  };
  /// `starting`: at the first completions of a busy period, as long as they may be one burst. `closing`: the window is
  /// full and ends with the present burst.
  enum clock_state : std::uint8_t { stopped, starting, running, closing };

  void look(io::operation_kind kind, byte_count bytes, time_point now) noexcept;
  void end_windows(time_point at) noexcept;
  void take_in(const window& seen, bool as_lower_bound) noexcept;
  void assume_missing_rates(const window& seen) noexcept;

  mutable std::mutex mutex_;
  unsigned in_flight_ = 0;
  window any_;     // with at least one transfer in flight
  window queued_;  // as said above
  clock_state clock_ = stopped;
  measured_rate known_;
};

}  // namespace forebay::store_detail
