#include <forebay/store/detail/rate_meter.hpp>

namespace forebay::store_detail {
namespace {

constexpr double newest_window = 0.4;         // its part of the average
constexpr double mix_memory = 1.0 - 1 / 1e3;  // of the bytes per direction, from window to window

}  // namespace

void rate_meter::look(time_point now) noexcept {
  any_.pass(now);
  run_clock(now);
  queued_.look_at = queued_.transfers + std::max(1U, queued_.transfers / 4);
  if (clock_ != starting && queued_.full()) {
    take_in(queued_, false);
    queued_.restart(now);
    any_.restart(now);
  } else if (any_.full() && any_.transfers > 2 * queued_.transfers) {
    take_in(any_, true);
    any_.restart(now);
  }
  before_ = clock_ == running ? before_ : queued_;
}

/// At a completion. Leaves out of `queued_` what the clock did not see.
void rate_meter::run_clock(time_point now) noexcept {
  if (clock_ == starting && now - queued_.since > rate_burst_time) {
    clock_ = running;
  }
  if (clock_ == running) {
    queued_.pass(now);
  } else {
    queued_ = before_;
    queued_.since = now;
  }
  if (in_flight_ == 0) {
    clock_ = stopped;
  } else if (clock_ == stopped) {
    clock_ = starting;
  }
}

void rate_meter::take_in(const window& seen, bool as_lower_bound) noexcept {
  const double bytes = seen.bytes_read + seen.bytes_written;
  if (bytes <= 0) {
    return;
  }
  known_.bytes_read = known_.bytes_read * mix_memory + seen.bytes_read;
  known_.bytes_written = known_.bytes_written * mix_memory + seen.bytes_written;
  const double seconds = to_seconds(seen.busy);
  const auto known_or = [](double rate, double otherwise) { return rate > 0 ? rate : otherwise; };
  const double read = known_or(known_.read, known_or(known_.write, bytes / seconds));
  const double write = known_or(known_.write, known_or(known_.read, bytes / seconds));
  // The window took `speed` times less than the rates foretold.
  const double speed = (seen.bytes_read / read + seen.bytes_written / write) / seconds;
  if (as_lower_bound && speed < 1 && known_.read + known_.write > 0) {
    return;
  }
  const auto renew = [&](double& rate, double assumed, double part) {
    if (part > 0) {
      const double weight = rate > 0 ? newest_window * part : 1.0;
      rate = assumed * (1 + weight * (speed - 1));
    }
  };
  renew(known_.read, read, seen.bytes_read / bytes);
  renew(known_.write, write, seen.bytes_written / bytes);
}

}  // namespace forebay::store_detail
