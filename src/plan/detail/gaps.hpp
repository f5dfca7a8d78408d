#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

inline constexpr std::uint32_t not_fetched = ~std::uint32_t{0};

/// The time between two consecutive accesses to an item in one tier, cyclically: whether the copy stays there is the
/// planner's choice. Positions are steps; `to` may lie in the next iteration (at or beyond the number of steps).
struct gap {
  item_index item = 0;
  std::uint32_t from = 0;         ///< the access before
  std::uint32_t to = 0;           ///< the access after it, above `from`
  std::uint32_t earliest = 0;     ///< a fetch may be issued before this step, or later
  bool may_keep = false;          ///< the copy is still current at `to`, and somebody will need it
  bool needed = false;            ///< the access at `to` needs contents
  std::uint32_t access = 0;       ///< of a host gap: the access (index in access_lists::all) that its start belongs to
  bool persists = false;          ///< no step creates the item: it outlives the iteration
  double seconds_per_byte = 0.0;  ///< link time that keeping saves
  double bias = 0.0;              ///< added to the logarithm of its worth

  // What was chosen.
  bool kept = false;
  bool parked = false;  ///< of a host gap: the copy waits on the device until it is fetched; of a device gap: it is
                        ///< such a copy, which stays there although the host needs it next
  std::uint32_t fetch = not_fetched;  ///< the copy is brought before this step; `to` or earlier
};

}  // namespace forebay::plan::detail
