#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace forebay::store_bench {

/// The quantile `q` in [0, 1] by linear interpolation between order statistics; 0 of nothing.
[[nodiscard]] inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) {
    return 0.0;
  }
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

[[nodiscard]] inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace forebay::store_bench
