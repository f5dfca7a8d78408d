#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// A set of tiers: where current copies of an item are.
enum class copies : std::uint8_t { none = 0, device = 1, host = 2, storage = 4 };

[[nodiscard]] constexpr copies operator|(copies a, copies b) {
  return static_cast<copies>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr copies operator&(copies a, copies b) {
  return static_cast<copies>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr copies without(copies set, copies gone) {
  return static_cast<copies>(static_cast<std::uint8_t>(set) & ~static_cast<std::uint8_t>(gone));
}
[[nodiscard]] constexpr bool has(copies set, copies one) { return (set & one) != copies::none; }

/// A direction of a link; a transfer is always between the host and one other tier.
enum class link : std::uint8_t { h2d, d2h, storage_read, storage_write };

[[nodiscard]] constexpr copies source_of(link l) {
  return l == link::h2d || l == link::storage_write ? copies::host
                                                    : (l == link::d2h ? copies::device : copies::storage);
}
[[nodiscard]] constexpr copies target_of(link l) {
  return l == link::h2d ? copies::device : (l == link::storage_write ? copies::storage : copies::host);
}

/// One thing to do. Plain value; the factories below make them.
struct operation {
  enum class kind : std::uint8_t { step, transfer, drop };

  kind what = kind::step;
  std::uint32_t index = 0;     ///< the step, or the item
  link over = link::h2d;       ///< of a transfer
  std::uint32_t path = 0;      ///< of a transfer to or from storage; a read uses the path of the write before it
  copies gone = copies::none;  ///< of a drop: the one tier whose copy ends

  friend bool operator==(const operation&, const operation&) = default;
};

[[nodiscard]] constexpr operation run_step(std::uint32_t step) {
  return {operation::kind::step, step, link::h2d, 0, copies::none};
}
[[nodiscard]] constexpr operation move_item(item_index item, link over, std::uint32_t path = 0) {
  return {operation::kind::transfer, item, over, path, copies::none};
}
[[nodiscard]] constexpr operation drop_copy(item_index item, copies from) {
  return {operation::kind::drop, item, link::h2d, 0, from};
}

/// The planner's result for one cyclic iteration in its steady state: one total order of operations.
///
/// Meaning: engines (device steps, host steps, each link direction, each storage path's direction, or the whole path
/// when it is half duplex) take their operations in this order, and in each tier memory is granted in this order. An
/// operation starts when its engine is free, its inputs are valid and its memory is granted; once started it never
/// waits. A step that writes, creates or frees an item starts when earlier transfers of it and earlier conflicting
/// steps have ended; from its start all other copies, storage included, are stale and their memory is free. A step that
/// frees an item ends every copy of it at its end. A drop ends a copy as soon as what reads it before has ended: a
/// redundant one, or one whose contents nobody needs any more. The order repeats: what follows the last operation is
/// the first one of the next iteration, so that the copies after the last operation are those before the first.
struct schedule {
  std::vector<operation> operations;
  std::vector<copies> at_start;          ///< by item: where its copies are before the first operation
  std::vector<std::uint32_t> stored_on;  ///< by item: the storage path of the copy that is there at the start, else 0
};

}  // namespace forebay::plan
