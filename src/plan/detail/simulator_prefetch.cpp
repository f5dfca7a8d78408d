// The look-ahead.
#include <algorithm>
#include <utility>

#include <forebay/plan/packing.hpp>

#include "plan/detail/simulator.hpp"

namespace forebay::plan::detail {

/// The engine's look-ahead: per tier the longest run of coming steps whose items fit together; victims are only items
/// used later than what comes in.
void simulator::prefetch() {
  ++walk_;
  std::array<bool, 2> open{true, true};
  std::array<byte_count, 2> bytes{};
  std::array<byte_count, 2> workspace{};
  const auto steps = static_cast<std::uint32_t>(trace_.steps.size());
  for (std::uint32_t d = 0; d < steps && (open[device] || open[host]); ++d) {
    const trace_step& step = trace_.steps[(cursor_ + d) % steps];
    byte_count& largest = workspace[tier_of(step)];
    largest = std::max(largest, align_up(step.workspace, block_alignment));
    for (const item_access& a : step.accesses) {
      if (std::exchange(stamp_[a.item], walk_) == walk_) {
        continue;
      }
      const item& i = items_[a.item];
      if (step.where == place::device) {
        bytes[device] += bytes_[a.item];
        open[device] =
            open[device] && bytes[device] + workspace[device] <= capacity_[device] && prefetch_item(a, device, d);
        if (open[device] || !needs_contents(a.how) || i.copies[device].has_memory()) {
          continue;
        }
      }
      bytes[host] += two_tiers_ ? 0 : bytes_[a.item];
      open[host] = open[host] && bytes[host] + workspace[host] <= capacity_[host] && prefetch_item(a, host, d);
    }
  }
}

bool simulator::prefetch_item(const item_access& a, std::size_t tier, std::uint32_t distance) {
  item& i = items_[a.item];
  if (i.copies[tier].coming() || i.moving) {
    return true;
  }
  if (needs_contents(a.how) && (!i.defined || i.writers > 0)) {
    return true;  // its contents are still being made
  }
  const placed outcome = place_item(a.item, tier, why::prefetch, distance);
  if (outcome == placed::yes && needs_contents(a.how)) {
    const std::uint32_t again = next_use_.distance_after(a.item, cursor_, distance);
    const bool keep = tier == device && i.copies[host].now != state::present && i.stored && !modifies(a.how) &&
                      place_item(a.item, host, why::spill, again) == placed::yes;
    fetch(a.item, tier, 1 + std::uint64_t{distance}, keep);
  }
  return outcome != placed::no;
}

}  // namespace forebay::plan::detail
