#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/detail/item_layout.hpp"

namespace forebay::plan::detail {

/// Finds the cheapest way for an item to be where the steps need it, on average over iterations: the cheapest closed
/// path over the sets of tiers that hold a current copy.
class item_path {
 public:
  /// The runs partition the sub-slots, in order; there is one at least. Both must outlive this.
  item_path(const timeline& time, const std::vector<price_run>& runs);

  /// Steps of the clock whose working set is at least `shut_by` leave no room for an item that is not theirs; no
  /// value: items are divisible, and any step may leave some room for a part.
  /// Seconds per byte; zero where more steps overlap than can be told apart at a fair cost.
  /// O((runs + accesses) x ways to begin).
  [[nodiscard]] double cheapest(item_story item, std::optional<byte_count> shut_by);

  /// The most additions that a result is made of.
  [[nodiscard]] std::size_t longest_sum() const { return longest_sum_; }

 private:
  /// Least cost by set of tiers (device 1, host 2, storage 4) with a current copy; the empty set stands for contents
  /// that nobody needs any more.
  using costs = std::array<double, 8>;

  [[nodiscard]] std::vector<std::size_t> sets_at_anchor() const;
  [[nodiscard]] double closed_path(std::int64_t behind, std::size_t set);
  void cross(const item_region& r);
  void enter(const item_region& r, costs& c) const;
  void stay(const item_region& r, costs& c) const;
  static void move_copies(const price_run& run, costs& c);
  static void use(uses how, std::size_t tier, costs& c);

  bool has_storage_;
  std::size_t own_;    ///< the clock's tier, as a bit of a set
  std::size_t other_;  ///< that of the floating steps
  std::size_t longest_sum_ = 0;

  // Of the item at hand.
  item_layout layout_;
  std::int64_t behind_ = 0;         ///< floating accesses at the anchor, counted over iterations
  std::size_t least_ = 0;           ///< further ones that are behind where the path is by now
  std::vector<costs> by_progress_;  ///< by further ones that are
};

}  // namespace forebay::plan::detail
