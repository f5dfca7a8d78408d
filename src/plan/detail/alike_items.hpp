#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <forebay/plan/trace.hpp>

#include "plan/detail/timeline.hpp"

namespace forebay::plan::detail {

/// Items that are accessed alike, as one: what holds for a byte of one holds for all of them. Where it matters which
/// steps leave room for an item, they are of one size as well.
struct alike_items {
  std::vector<item_index> group_of;        ///< by item
  std::vector<const item_story*> stories;  ///< by group
  std::vector<double> bytes;               ///< by group
  /// By group, for items that move whole and are so large that some step of the clock leaves no room for one: the
  /// least working set that does so.
  std::vector<std::optional<byte_count>> shut_by;
  std::size_t accesses = 0;  ///< of all groups
};

/// `capacity`: of the clock's tier. O(accesses). The stories stay those of `time`.
[[nodiscard]] alike_items group_alike(const trace& t, const timeline& time, byte_count capacity, bool items_move_whole);

}  // namespace forebay::plan::detail
