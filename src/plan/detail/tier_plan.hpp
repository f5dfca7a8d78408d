#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plan/detail/gaps.hpp"

namespace forebay::plan::detail {

enum class selection : std::uint8_t { furthest_next_use, density, spread_density };

/// What the search varies for one tier.
struct tier_rule {
  selection by = selection::spread_density;
  double slack = 0.0;       ///< part of the capacity that kept copies leave to copies in transit
  double lead = 0.05;       ///< how long before its use a copy may be brought, as a part of the iteration
  double persisting = 0.0;  ///< added to the logarithm of the worth of copies of items that persist
  /// Limits of a fixed rule, in positions: how long before its use a copy may be brought, and the longest gap over
  /// which a copy of an item that persists is kept.
  std::uint32_t most_ahead = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t longest_kept = std::numeric_limits<std::uint32_t>::max();
};

/// The gaps that may be kept, the most worth while first.
[[nodiscard]] std::vector<std::uint32_t> by_worth(const std::vector<gap>& gaps, const std::vector<double>& starts,
                                                  const tier_rule& rule);

/// Chooses which gaps keep their copy and when the others are fetched, so that no position's bytes exceed the capacity
/// where its working set alone does not. `working_set`: bytes by position that are there whatever is chosen. `starts`:
/// of each step, in seconds, and the end of the last.
void plan_tier(std::vector<gap>& gaps, const std::vector<byte_count>& item_bytes,
               const std::vector<byte_count>& working_set, byte_count capacity, const std::vector<double>& starts,
               const tier_rule& rule);

}  // namespace forebay::plan::detail
