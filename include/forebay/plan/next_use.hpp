#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// Answers "how many steps until this item is used next?" for the cyclic order: the key of furthest-next-use eviction
/// (Belady 1966). Built once per order in O(accesses); a query is a binary search over the item's accesses.
class next_use {
 public:
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

  next_use() = default;
  explicit next_use(const trace& t);

  /// Steps from `position` (the index of the next step to run) to the first access at or after it: 0 .. steps - 1, or
  /// `never` when no step accesses the item.
  [[nodiscard]] std::uint32_t distance(item_index item, std::uint32_t position) const;
  /// The same for the first access strictly after the step at `position + after` steps from now.
  [[nodiscard]] std::uint32_t distance_after(item_index item, std::uint32_t position, std::uint32_t after) const;

  [[nodiscard]] std::uint32_t steps() const noexcept { return steps_; }

 private:
  std::uint32_t steps_ = 0;
  std::vector<std::uint32_t> first_;      // item -> begin of its run in positions_
  std::vector<std::uint32_t> positions_;  // ascending step indices, item after item
};

}  // namespace forebay::plan
