#pragma once

#include <cstddef>
#include <vector>

#include "plan/detail/window_charges.hpp"

namespace forebay::plan::detail {

/// Consecutive windows that go once round, each from a cut over so many cuts.
struct cyclic_partition {
  struct part {
    std::size_t from = 0;
    std::size_t count = 0;
  };
  std::vector<part> parts;
  double seconds = 0.0;
};

/// A partition whose windows take long together. A pass over two rounds shows where good ones have cuts, then there is
/// a pass over one round from each of these: best but for partitions that have none of them. O(cuts^2 x windows found).
[[nodiscard]] cyclic_partition best_partition(const window_charges& windows);

}  // namespace forebay::plan::detail
