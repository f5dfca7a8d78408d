#include <forebay/base/clock.hpp>

#include <thread>

namespace forebay {

void steady_clock::sleep_until(time_point deadline) { std::this_thread::sleep_until(deadline); }

steady_clock& steady_clock::instance() noexcept {
  static steady_clock clock;
  return clock;
}

}  // namespace forebay
