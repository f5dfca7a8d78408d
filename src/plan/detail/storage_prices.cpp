#include "plan/detail/storage_prices.hpp"

#include <algorithm>
#include <cmath>

namespace forebay::plan::detail {
namespace {

/// What the paths earn in a second, each in its best operating point.
double earned_per_second(const machine& m, double read, double write) {
  double sum = 0.0;
  for (const storage_link& path : m.storage) {
    if (!m.half_duplex_storage) {
      sum += (read > 0.0 ? read * path.read_rate : 0.0) + (write > 0.0 ? write * path.write_rate : 0.0);
      continue;
    }
    double most = std::max(read > 0.0 ? read * path.read_rate : 0.0, write > 0.0 ? write * path.write_rate : 0.0);
    for (const mixed_rate& mix : path.mixes) {
      most = std::max(most, (read * mix.read_share + write * (1.0 - mix.read_share)) * mix.total_rate);
    }
    sum += most;
  }
  return sum;
}

class best_of {
 public:
  best_of(const machine& m, double read, double written) : m_(m), read_(read), written_(written) {}

  /// Prices in this proportion.
  void consider(double read, double write) {
    const double earned = earned_per_second(m_, read, write);
    const double worth = (read * read_ + write * written_) / earned;
    if (std::isfinite(earned) && earned > 0.0 && worth > worth_) {
      worth_ = worth;
      best_ = {read / earned, write / earned};
    }
  }
  [[nodiscard]] storage_prices best() const { return best_; }

 private:
  const machine& m_;
  double read_;
  double written_;
  double worth_ = 0.0;
  storage_prices best_;
};

}  // namespace

// What all paths earn is piecewise linear and convex in the prices, so the best proportion is one where only one
// direction has a price, or two operating points of some path earn the same.
storage_prices best_storage_prices(const machine& m, double bytes_read, double bytes_written) {
  best_of best(m, bytes_read, bytes_written);
  best.consider(1.0, 0.0);
  best.consider(0.0, 1.0);
  if (!m.half_duplex_storage || bytes_read <= 0.0 || bytes_written <= 0.0) {
    return best.best();
  }
  for (const storage_link& path : m.storage) {
    const std::size_t points = path.mixes.size() + 2;
    const auto rate = [&](std::size_t i, bool reads) {
      if (i < 2) {
        return (i == 0) == reads ? (reads ? path.read_rate : path.write_rate) : 0.0;
      }
      const mixed_rate& mix = path.mixes[i - 2];
      return (reads ? mix.read_share : 1.0 - mix.read_share) * mix.total_rate;
    };
    for (std::size_t i = 0; i < points; ++i) {
      for (std::size_t k = 0; k < points; ++k) {
        const double more_read = rate(i, true) - rate(k, true);
        const double more_written = rate(k, false) - rate(i, false);
        if (more_read > 0.0 && more_written > 0.0 && std::isfinite(more_read) && std::isfinite(more_written)) {
          best.consider(1.0 / more_read, 1.0 / more_written);
        }
      }
    }
  }
  return best.best();
}

}  // namespace forebay::plan::detail
