// What to bring before it is asked for: a walk along the order from the step expected next.
#include <algorithm>

#include "engine/scheduler.hpp"

namespace forebay::detail {

// The walk opens a window per tier: the longest run of coming steps whose distinct blocks fit in the tier together.
// Inside it, everything is brought (and room made for what will be created); victims are only blocks used later than
// what comes in, so that no fetch undoes another (Belady's rule with look-ahead). Only a block's first use in the walk
// counts: later uses follow from it.
void scheduler::prefetch() {
  const auto steps = static_cast<std::uint32_t>(steps_.size());
  quiet_ = false;
  incomplete_ = false;
  if (!prefetch_enabled_ || steps == 0 || failure_ != nullptr) {
    return;
  }
  ++walk_;
  stamp_.resize(blocks_.size(), 0);
  bool device_open = true;
  bool host_open = true;
  byte_count device_bytes = 0;
  byte_count host_bytes = 0;
  byte_count device_scratch = 0;
  byte_count host_scratch = 0;
  const byte_count device_capacity = tier_capacity(place::device);
  const byte_count host_capacity = tier_capacity(place::host);
  for (std::uint32_t d = 0; d < steps && (device_open || host_open); ++d) {
    const step_plan& step = steps_[(cursor_ + d) % steps];
    byte_count& scratch = step.where == place::device ? device_scratch : host_scratch;
    scratch = std::max(scratch, arena(tier::device).rounded(step.workspace));
    for (const block_access& a : step.blocks) {
      if (stamp_[a.block] == walk_) {
        continue;
      }
      stamp_[a.block] = walk_;
      const block_record& b = blocks_[a.block];
      if (step.where == place::device) {
        device_bytes += b.bytes;
        device_open = device_open && device_bytes + device_scratch <= device_capacity && prefetch_device(a, d);
        const bool from_storage = needs_contents(a.how) && !b.device.has_memory();
        if (device_open || !from_storage) {
          continue;
        }
      }
      if (!b.host.fixed) {
        host_bytes += b.bytes;
      }
      host_open = host_open && host_bytes + host_scratch <= host_capacity && prefetch_host(a, d);
    }
  }
  quiet_ = !incomplete_ && device_open && host_open && moves_.empty() && requests_.empty();
}

bool scheduler::prefetch_device(const block_access& a, std::uint32_t distance) {
  block_record& b = blocks_[a.block];
  if (b.device.valid() || b.device.now == replica::state::arriving || b.in_place || b.moving) {
    return true;
  }
  const need why{need::kind::prefetch, distance};
  if (!needs_contents(a.how)) {
    return place_block(a.block, tier::device, why) != placed::no;
  }
  if (b.initialised == 0 || b.writers != 0) {
    incomplete_ = true;  // its contents are still being made
    return true;
  }
  const placed outcome = place_block(a.block, tier::device, why);
  if (outcome == placed::yes) {
    // A host copy on the way down is worth its memory when the block is used again before what it would displace.
    const std::uint32_t again = next_use_.distance_after(a.block, cursor_, distance);
    const bool keep = !b.host.valid() && b.stored && !modifies(a.how) &&
                      place_block(a.block, tier::host, {need::kind::spill, again}) == placed::yes;
    start_fetch(a.block, tier::device, 1 + std::uint64_t{distance}, keep);
  }
  return outcome != placed::no;
}

bool scheduler::prefetch_host(const block_access& a, std::uint32_t distance) {
  block_record& b = blocks_[a.block];
  if (b.host.valid() || b.host.now == replica::state::arriving || b.in_place || b.moving) {
    return true;
  }
  if (needs_contents(a.how) && (b.initialised == 0 || b.writers != 0)) {
    incomplete_ = true;
    return true;
  }
  const placed outcome = place_block(a.block, tier::host, {need::kind::prefetch, distance});
  if (outcome == placed::yes && needs_contents(a.how)) {
    start_fetch(a.block, tier::host, 1 + std::uint64_t{distance}, false);
  }
  return outcome != placed::no;
}

}  // namespace forebay::detail
