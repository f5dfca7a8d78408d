#pragma once

#include <forebay/base/clock.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/transfer/mover.hpp>

namespace forebay::detail {

/// A link's rate as it is lately: an exponentially weighted mean over the stretches between two updates.
class link_rate {
 public:
  /// Bytes per second; unlimited before anything was carried. A stretch in which next to nothing moved tells nothing
  /// and is added to the next one.
  double update(const link_use& use, time_point now) {
    constexpr byte_count least = 1_MiB;
    constexpr double weight = 0.5;  // of a new stretch
    const byte_count bytes = use.carried() - bytes_;
    const double busy = to_seconds(use.busy_by(now) - busy_);
    if (busy <= 0.0 || (bytes < least && rate_ != plan::unlimited_rate)) {
      return rate_;
    }
    if (bytes != 0) {
      const double lately = static_cast<double>(bytes) / busy;
      rate_ = rate_ == plan::unlimited_rate ? lately : rate_ + weight * (lately - rate_);
    }
    bytes_ += bytes;
    busy_ = use.busy_by(now);
    return rate_;
  }

 private:
  byte_count bytes_ = 0;
  duration busy_{};
  double rate_ = plan::unlimited_rate;
};

}  // namespace forebay::detail
