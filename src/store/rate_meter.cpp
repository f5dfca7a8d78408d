#include <forebay/store/detail/rate_meter.hpp>

namespace forebay::store_detail {
namespace {

constexpr double newest_window = 0.4;         // its part of the average
constexpr double mix_memory = 1.0 - 1 / 1e3;  // of the bytes per direction, from window to window

}  // namespace

/// At a completion. What the clock did not see stays out of `queued_`.
void rate_meter::look(io::operation_kind kind, byte_count bytes, time_point now) noexcept {
  const bool new_burst = now - queued_.since > rate_burst_time;
  if (clock_ == closing && new_burst) {
    end_windows(queued_.since);
  }
  if (clock_ != stopped && new_burst) {
    clock_ = running;
  }
  any_.pass(now);
  if (clock_ == running || clock_ == closing) {
    queued_.add(kind, bytes);
    queued_.pass(now);
  }
  queued_.since = now;
  queued_.look_at = queued_.transfers + std::max(1U, queued_.transfers / 4);
  if (in_flight_ == 0) {
    clock_ = stopped;
    if (queued_.full()) {
      end_windows(now);
    }
  } else if (clock_ == stopped) {
    clock_ = starting;
  } else if (clock_ == running && queued_.full()) {
    clock_ = closing;
  }
  if (any_.full() && any_.transfers > 2 * queued_.transfers) {
    take_in(any_, true);
    any_.restart(now);
  }
}

void rate_meter::end_windows(time_point at) noexcept {
  take_in(queued_, false);
  queued_.restart(at);
  any_.restart(at);
}

void rate_meter::take_in(const window& seen, bool as_lower_bound) noexcept {
  const double bytes = seen.bytes_read + seen.bytes_written;
  if (bytes <= 0) {
    return;
  }
  known_.bytes_read = known_.bytes_read * mix_memory + seen.bytes_read;
  known_.bytes_written = known_.bytes_written * mix_memory + seen.bytes_written;
  assume_missing_rates(seen);
  const auto seconds_at = [](double moved, double rate) { return moved > 0 ? moved / rate : 0.0; };
  // How many times faster the window went than the rates foretold.
  const double speed =
      (seconds_at(seen.bytes_read, known_.read) + seconds_at(seen.bytes_written, known_.write)) / to_seconds(seen.busy);
  if (as_lower_bound && speed < 1) {
    return;
  }
  known_.read *= 1 + newest_window * seen.bytes_read / bytes * (speed - 1);
  known_.write *= 1 + newest_window * seen.bytes_written / bytes * (speed - 1);
}

/// The first window with reads, or with writes, gives their rate: what the other direction leaves of its time.
void rate_meter::assume_missing_rates(const window& seen) noexcept {
  constexpr double least_part = 0.1;  // of the time; below, the rest says little, and both count as equally fast
  const double seconds = to_seconds(seen.busy);
  const auto assume = [&](double& rate, double moved, double other_rate, double other_moved) {
    if (rate <= 0 && moved > 0) {
      const double left = other_rate > 0 ? seconds - other_moved / other_rate : seconds * moved / (moved + other_moved);
      rate = left > least_part * seconds ? moved / left : (moved + other_moved) / seconds;
    }
  };
  assume(known_.read, seen.bytes_read, known_.write, seen.bytes_written);
  assume(known_.write, seen.bytes_written, known_.read, seen.bytes_read);
}

}  // namespace forebay::store_detail
