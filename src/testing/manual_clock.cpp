#include <forebay/testing/manual_clock.hpp>

#include <forebay/base/contract.hpp>

namespace forebay::testing {

time_point manual_clock::now() const noexcept {
  const std::scoped_lock lock(mutex_);
  return now_;
}

void manual_clock::sleep_until(time_point deadline) {
  std::unique_lock lock(mutex_);
  if (now_ >= deadline) {
    return;
  }
  ++sleepers_;
  slept_.notify_all();
  moved_.wait(lock, [&] { return now_ >= deadline; });
  --sleepers_;
}

void manual_clock::advance(duration by) {
  FOREBAY_EXPECTS(by >= duration::zero(), "time does not go backwards");
  const std::scoped_lock lock(mutex_);
  now_ += by;
  moved_.notify_all();
}

void manual_clock::wait_for_sleepers(std::size_t n) {
  std::unique_lock lock(mutex_);
  slept_.wait(lock, [&] { return sleepers_ >= n; });
}

std::size_t manual_clock::sleepers() const {
  const std::scoped_lock lock(mutex_);
  return sleepers_;
}

}  // namespace forebay::testing
