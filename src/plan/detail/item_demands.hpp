#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/trace.hpp>

#include "plan/detail/alike_items.hpp"

namespace forebay::plan::detail {

/// Contents that a clock step needs in its tier. Positions are boundaries and sub-slots; those of the iteration before
/// are below zero.
struct upper_need {
  item_index group = 0;
  std::int64_t at = 0;       ///< the boundary where the step starts
  std::int64_t before = 0;   ///< where the access before it ends; the copy may have stayed since then
  bool stale = false;        ///< no copy stays: the other engine changes the item, or some step leaves no room for it
  std::int64_t changed = 0;  ///< and then it is brought in this sub-slot or later
};

/// Contents that a clock step made.
struct upper_version {
  item_index group = 0;
  std::int64_t at = 0;         ///< the boundary where the step ends; they don't move before
  bool leaves = false;         ///< the other engine needs them, or some step leaves no room for them
  std::int64_t left_by = 0;    ///< at this sub-slot at the latest
  std::int64_t used_last = 0;  ///< the boundary of the last clock step that needs them
};

/// Contents that any step needs in memory.
struct memory_need {
  item_index group = 0;
  std::int64_t from = 0;     ///< the access is not before this sub-slot,
  std::int64_t at = 0;       ///< and has begun at this boundary
  std::int64_t created = 0;  ///< the contents are younger than this sub-slot, perhaps
};

/// Contents that any step made.
struct memory_change {
  item_index group = 0;
  std::int64_t from = 0;  ///< they move in this sub-slot or later
  std::int64_t done = 0;  ///< and are made in this one, or before this boundary
};

/// What windows of an iteration are charged for, by groups of items that are accessed alike; each list by rising
/// position.
struct item_demands {
  std::vector<upper_need> upper_needs;
  std::vector<upper_version> upper_versions;
  std::vector<memory_need> memory_needs;
  std::vector<memory_change> memory_changes;
  /// By group: boundaries where its contents are still needed, by their ends, which lie in the first iteration.
  std::vector<std::vector<slot_range>> needed;
};

/// O(accesses log accesses). For proposals only: approximate where floating accesses may be on either side of others.
[[nodiscard]] item_demands demands_of(const alike_items& items, const timeline& time);

}  // namespace forebay::plan::detail
