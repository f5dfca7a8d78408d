#pragma once

#include <chrono>

namespace forebay {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

[[nodiscard]] inline double to_seconds(duration d) { return std::chrono::duration<double>(d).count(); }
[[nodiscard]] inline duration from_seconds(double s) {
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(s));
}

/// Where the library takes the time from, so that tests can inject their own. Implementations are thread-safe.
class clock {
 public:
  clock() = default;
  clock(const clock&) = delete;
  clock& operator=(const clock&) = delete;
  virtual ~clock() = default;

  [[nodiscard]] virtual time_point now() const noexcept = 0;
  /// Blocks the calling thread until `now() >= deadline`.
  virtual void sleep_until(time_point deadline) = 0;
};

/// The machine's monotonic clock.
class steady_clock final : public clock {
 public:
  [[nodiscard]] time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  void sleep_until(time_point deadline) override;

  /// The one stateless instance, for defaults.
  [[nodiscard]] static steady_clock& instance() noexcept;
};

}  // namespace forebay
