#include <forebay/store/detail/link_pacer.hpp>

#include <algorithm>

namespace forebay::store_detail {

time_point paced_link::end() const noexcept { return busy_since_ + from_seconds(busy_bytes_ / rate_); }

time_point paced_link::reserve(byte_count bytes, time_point now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (now > end()) {
    busy_since_ = now;
    busy_bytes_ = 0;
  }
  busy_bytes_ += static_cast<double>(bytes);
  return end();
}

void link_pacer::limit(int file, byte_count read_rate, byte_count write_rate) {
  if (read_rate != 0) {
    links_.emplace_back(file, io::operation_kind::read, read_rate);
  }
  if (write_rate != 0) {
    links_.emplace_back(file, io::operation_kind::write, write_rate);
  }
}

time_point link_pacer::hold_until(const transfer& t) noexcept {
  time_point until = inner_ == nullptr ? time_point{} : inner_->hold_until(t);
  for (link& l : links_) {
    if (l.file == t.file && l.kind == t.kind) {
      until = std::max(until, l.pace.reserve(t.bytes, std::chrono::steady_clock::now()));
    }
  }
  return until;
}

}  // namespace forebay::store_detail
