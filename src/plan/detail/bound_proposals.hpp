#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/bound.hpp>

#include "plan/detail/item_demands.hpp"

namespace forebay::plan::detail {

/// Prices, and the windows that they come from.
struct bound_proposal {
  certificate prices;
  std::vector<bound_window> windows;
};

/// Prices from partitions of the iteration into windows: one proposal for each way to see which steps leave no room for
/// what is moved beside them. Boundaries that windows may begin and end at are all of them in a short iteration; in a
/// long one first some, evenly spread, then those near the ones that were used, at a fraction of the distance.
class bound_proposals {
 public:
  /// All arguments must outlive this.
  bound_proposals(const trace& t, const machine& m, const timeline& time, bool items_move_whole);

  [[nodiscard]] std::size_t size() const { return rooms_.size(); }
  [[nodiscard]] bound_proposal make(std::size_t i) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> first_cuts() const;
  [[nodiscard]] std::vector<std::int64_t> cuts_near(const std::vector<bound_window>& used, std::int64_t distance) const;
  [[nodiscard]] bound_proposal best_over(std::vector<std::int64_t> cuts, byte_count room) const;

  const trace& trace_;
  const machine& machine_;
  const timeline& time_;
  alike_items items_;
  item_demands demands_;
  std::size_t most_cuts_;
  std::vector<byte_count> rooms_;
};

}  // namespace forebay::plan::detail
