#pragma once

#include <forebay/plan/machine.hpp>

namespace forebay::plan::detail {

/// Prices of a byte read and of a byte written, in seconds, at which no path earns more than its time in any mix of
/// operating points, all paths together one second a second.
struct storage_prices {
  double read = 0.0;
  double write = 0.0;
};

/// Those at which so many bytes are worth most: then that is the least time in which they can be moved.
[[nodiscard]] storage_prices best_storage_prices(const machine& m, double bytes_read, double bytes_written);

}  // namespace forebay::plan::detail
