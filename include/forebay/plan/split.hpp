#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// A split gives so many parts in all at most, so that a slip in a unit is an error and no exhausted memory.
inline constexpr std::uint32_t most_parts = 1U << 24U;

/// A trace whose large items move in parts, each of which is an item of its own.
struct split_trace {
  trace parts;                         ///< the same steps; an access to an item is one to each of its parts, in order
  std::vector<item_index> item_of;     ///< by part: the item that it belongs to; never falls
  std::vector<item_index> first_part;  ///< by item; one more entry than items, the last is the number of parts
};

/// Every item of more than `part_bytes` becomes the least number of parts of at most that, of sizes as equal as can be
/// (larger ones first), which add up to the item's. An item of whole blocks (`block_alignment`) has parts of whole
/// blocks, and so of a block at least, however small `part_bytes` is. O(parts + accesses to parts).
/// \throws usage_error naming the value and the limit when `part_bytes` is zero, when there would be more than
/// `most_parts` parts in all, or when a step accesses an item that does not exist.
[[nodiscard]] split_trace split_items(const trace& t, byte_count part_bytes);

/// Every item becomes so many parts, by the same rules: fewer where it has fewer blocks (or bytes, when it is not of
/// whole blocks). An empty item stays whole.
/// \throws usage_error as `split_items` does, and when `parts` is zero.
[[nodiscard]] split_trace split_items_evenly(const trace& t, std::uint32_t parts);

}  // namespace forebay::plan
