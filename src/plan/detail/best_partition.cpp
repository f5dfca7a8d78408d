#include "plan/detail/best_partition.hpp"

#include <algorithm>

namespace forebay::plan::detail {
namespace {

/// \returns by number of cuts from `start` on: the greatest sum of windows that partition them.
std::vector<double> greatest_sums(const window_charges& w, std::size_t start, std::size_t length) {
  const std::size_t cuts = w.cuts().size();
  std::vector<double> best(length + 1, 0.0);
  for (std::size_t a = 0; a < length; ++a) {
    const double so_far = best[a];
    const double* seconds = w.row((start + a) % cuts);
    double* reached = best.data() + a + 1;
    for (std::size_t n = 0; n < std::min(cuts, length - a); ++n) {
      reached[n] = std::max(reached[n], so_far + seconds[n]);
    }
  }
  return best;
}

cyclic_partition partition_of(const window_charges& w, std::size_t start, std::size_t length) {
  const std::size_t cuts = w.cuts().size();
  const std::vector<double> best = greatest_sums(w, start, length);
  cyclic_partition found;
  found.seconds = best.back();
  for (std::size_t end = length; end > 0;) {
    std::size_t a = end - 1;
    while (best[a] + w.row((start + a) % cuts)[end - a - 1] < best[end]) {
      --a;
    }
    found.parts.push_back({(start + a) % cuts, end - a});
    end = a;
  }
  std::reverse(found.parts.begin(), found.parts.end());
  return found;
}

}  // namespace

cyclic_partition best_partition(const window_charges& w) {
  const std::size_t cuts = w.cuts().size();
  std::vector<bool> is_tried(cuts, false);
  std::vector<std::size_t> starts{0};
  for (const cyclic_partition::part& p : partition_of(w, 0, 2 * cuts).parts) {
    starts.push_back(p.from);
  }
  cyclic_partition best;
  for (const std::size_t start : starts) {
    if (!is_tried[start]) {
      is_tried[start] = true;
      cyclic_partition found = partition_of(w, start, cuts);
      if (best.parts.empty() || found.seconds > best.seconds) {
        best = std::move(found);
      }
    }
  }
  return best;
}

}  // namespace forebay::plan::detail
