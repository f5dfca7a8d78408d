#include <forebay/store/detail/rate_meter.hpp>

#include <algorithm>

namespace forebay::store_detail {
namespace {

constexpr double newest_window = 0.4;         // its part of the average
constexpr double mix_memory = 1.0 - 1 / 1e3;  // of the bytes per direction, from window to window

}  // namespace

void rate_meter::close_windows(time_point now) noexcept {
  // The queue has just lost a transfer: until now it was queued work if one is left.
  if (in_flight_ >= 1) {
    queued_.busy += std::max(now, queued_.since) - queued_.since;
    queued_.since = now;
  }
  any_.busy += std::max(now, any_.since) - any_.since;
  any_.since = now;
  queued_.look_at = queued_.transfers + std::max(1U, queued_.transfers / 4);
  if (queued_.full()) {
    take_in(queued_, false);
    queued_.restart(now);
    any_.restart(now);
  } else if (any_.full() && any_.transfers > 2 * queued_.transfers) {
    take_in(any_, true);
    any_.restart(now);
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
