#pragma once

#include <cstdint>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/plan/packing.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// A stay of an item's copy, or of a step's workspace, in a tier's memory.
struct residency {
  enum class kind : std::uint8_t { item, workspace };

  kind what = kind::item;
  std::uint32_t index = 0;   ///< the item, or the step
  std::uint32_t first = 0;   ///< the operation that takes the room
  std::uint32_t length = 0;  ///< in operations, the first included; goes past the schedule's end into its start
  byte_count bytes = 0;
  byte_count offset = 0;  ///< in the tier's memory

  friend bool operator==(const residency&, const residency&) = default;
};

struct placement {
  std::vector<residency> stays;  ///< by (first, index)
  byte_count height = 0;         ///< the smallest capacity in which these offsets fit
  byte_count load = 0;           ///< the most bytes there at once, each rounded up to the alignment: height >= load
};

/// Offsets in the device or the host tier for a schedule that `verify` accepts, such that no two stays that share an
/// operation overlap. A stay that goes past the end keeps its offset, so that the placement repeats like the schedule.
///
/// An execution that starts an operation when the memory at its offsets has been released, and grants memory in the
/// schedule's order, cannot deadlock, for it waits for earlier operations only.
///
/// `height` may exceed the capacity that the schedule was made for, by fragmentation: then it has to be made again for
/// less. Offsets are first fits in several orders (large first, long first, large times long first, in time), and the
/// lowest of these is taken; finding the least height is NP-hard. Quadratic at worst; near linear when most stays are
/// short. `alignment` is a power of two. \throws usage_error when it is not, or a copy is used that is not there.
[[nodiscard]] placement place_in(copies tier, const trace& t, const schedule& s,
                                 byte_count alignment = block_alignment);
[[nodiscard]] inline placement place_on_device(const trace& t, const schedule& s,
                                               byte_count alignment = block_alignment) {
  return place_in(copies::device, t, s, alignment);
}

}  // namespace forebay::plan
