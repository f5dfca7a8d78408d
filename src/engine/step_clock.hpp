#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include <forebay/base/clock.hpp>
#include <forebay/device/device.hpp>

namespace forebay::detail {

/// Measures how long each step of the order computes: from the later of its lease's grant and the end of the work
/// before it on the same stream, to the end of its own, less the time the stream stood waiting for copies. Thread-safe.
class step_clock {
 public:
  /// Of a stream, on one lease: computing, and before that waiting for copies.
  struct spent {
    duration computed{};
    duration waited{};
  };

  /// Forgets all; there are `steps` steps.
  void reset(std::size_t steps);
  /// So many steps, with seconds that are known already; negative: not measured yet.
  void restore(std::vector<double> seconds);
  /// The stream has just passed the end of a lease, of this step of the order or of none. Called in the stream's order.
  spent ended(std::optional<std::uint32_t> step, const stream& on, time_point granted, time_point now);
  /// A host step ran from `granted` to `now`.
  void ended(std::uint32_t step, time_point granted, time_point now);
  /// Seconds by step; empty while any step has not been measured yet.
  [[nodiscard]] std::vector<double> seconds() const;

 private:
  struct stream_clock {
    const stream* on = nullptr;
    time_point last_end;
    duration waited{};
  };

  void note(std::uint32_t step, double seconds);

  mutable std::mutex mutex_;
  std::vector<double> seconds_;  // smoothed; negative: not measured yet
  std::vector<stream_clock> streams_;
};

}  // namespace forebay::detail
