#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/bound.hpp>

#include "plan/detail/cut_choice.hpp"
#include "plan/detail/item_demands.hpp"

namespace forebay::plan::detail {

/// Prices, and the windows that they come from.
struct bound_proposal {
  certificate prices;
  std::vector<bound_window> windows;
  double seconds = 0.0;  ///< of the windows; what the prices prove is to be seen
};

/// Prices from partitions of the iteration into windows: one proposal for each way to see which steps leave no room for
/// what is moved beside them. In a long iteration cuts are few first, then near the ones that were used, closer and
/// closer.
class bound_proposals {
 public:
  /// All arguments must outlive this.
  bound_proposals(const trace& t, const machine& m, const timeline& time, const bound_search_options& options);

  [[nodiscard]] std::size_t size() const { return rooms_.size(); }
  [[nodiscard]] bound_proposal make(std::size_t i) const;

 private:
  [[nodiscard]] bound_proposal best_over(std::vector<std::int64_t> cuts, byte_count room) const;

  const trace& trace_;
  const machine& machine_;
  const timeline& time_;
  alike_items items_;
  item_demands demands_;
  std::size_t most_cuts_;
  cut_choice cuts_;
  std::vector<byte_count> rooms_;
};

}  // namespace forebay::plan::detail
