// What to bring before it is asked for: a walk along the order from the step expected next.
#include <algorithm>

#include "engine/scheduler.hpp"

namespace forebay::detail {
namespace {

// How far ahead of the demand a tier is filled at the price of evictions that could wait, as a part of its capacity.
// The rest of the look-ahead only uses free memory and what Belady's rule would evict anyway.
constexpr byte_count device_lead_divisor = 4;
constexpr byte_count host_lead_divisor = 8;

}  // namespace

// The walk opens a window per tier: the longest run of coming steps whose distinct blocks fit in the tier together.
// Inside it, everything is brought (and room made for what will be created), with two limits on what it may evict:
//  - only blocks used later than what comes in, so that no fetch undoes another (Belady's rule, with look-ahead);
//  - nothing at all while the steps in between will themselves leave enough blocks behind that are used even later:
//  those
//    are the victims that the rule would take at that time, and evicting others now costs extra transfers (the
//    conservative strategy of Cao, Felten, Karlin and Li, 1995). A lead of some bytes is exempt: it keeps the links
//    busy.
// Only a block's first use in the walk brings it: later uses follow from it.
void scheduler::prefetch() {
  const auto steps = static_cast<std::uint32_t>(steps_.size());
  quiet_ = false;
  incomplete_ = false;
  if (!prefetch_enabled_ || steps == 0 || failure_ != nullptr) {
    return;
  }
  ++walk_;
  stamp_.resize(blocks_.size(), 0);
  look_ahead device = open_window(tier::device, device_lead_divisor);
  look_ahead host = open_window(tier::host, host_lead_divisor);
  double ahead = 0.0;  // seconds until step d starts, as far as durations are known
  // Before durations are known nothing is ever too early; the walk then ends where it would cost more than it brings.
  constexpr std::uint32_t unknown_horizon = 256;
  const std::uint32_t horizon = known_seconds_.empty() ? std::min(steps, unknown_horizon) : steps;
  for (std::uint32_t d = 0; d < horizon && (device.open || host.open); ++d) {
    const std::uint32_t position = (cursor_ + d) % steps;
    const step_plan& step = steps_[position];
    look_ahead& own = step.where == place::device ? device : host;
    own.scratch = std::max(own.scratch, arena(tier::device).rounded(step.workspace));
    for (const block_access& a : step.blocks) {
      if (stamp_[a.block] == walk_) {
        continue;
      }
      stamp_[a.block] = walk_;
      const block_record& b = blocks_[a.block];
      if (step.where == place::device) {
        device.open = device.open && device.admits(b.bytes, seconds_to_bring(a, tier::device), ahead) &&
                      prefetch_device(a, d, device.may_evict());
        const bool from_storage = needs_contents(a.how) && !b.device.has_memory();
        if (device.open || !from_storage) {
          continue;
        }
      }
      host.open = host.open && host.admits(b.host.fixed ? 0 : b.bytes, seconds_to_bring(a, tier::host), ahead) &&
                  prefetch_host(a, d, host.may_evict());
    }
    note_releases(step, d, device, host);
    ahead += known_seconds_.empty() ? 0.0 : known_seconds_[position];
  }
  quiet_ = horizon == steps && !incomplete_ && device.open && host.open && moves_.empty() && requests_.empty();
}

void scheduler::move_cursor(std::uint32_t position) {
  const auto steps = static_cast<std::uint32_t>(steps_.size());
  cursor_ = steps == 0 ? 0 : position % steps;
  device_rests_ = 0;
  while (device_rests_ < steps && steps_[(cursor_ + device_rests_) % steps].where == place::host) {
    ++device_rests_;
  }
}

std::optional<double> scheduler::seconds_to_bring(const block_access& a, tier t) const {
  const block_record& b = blocks_[a.block];
  const replica& r = t == tier::device ? b.device : b.host;
  if (r.has_memory()) {
    return std::nullopt;
  }
  const bool from_storage = needs_contents(a.how) && !b.device.valid() && !b.host.valid();
  const double per_byte = (t == tier::device ? device_seconds_per_byte_ : 0.0) +
                          (t == tier::host || from_storage ? host_seconds_per_byte_ : 0.0);
  return static_cast<double>(b.bytes) * per_byte;
}

bool scheduler::look_ahead::admits(byte_count bytes, std::optional<double> seconds_to_bring, double seconds_left) {
  constexpr double margin = 2.0;     // start in twice the time that the transfers take
  constexpr double reserve = 0.005;  // seconds: what waking threads and the like may cost
  distinct += bytes;
  if (seconds_to_bring) {
    missing += bytes;
    missing_seconds += *seconds_to_bring;
    if (seconds_left > margin * missing_seconds + reserve) {
      return false;
    }
  }
  return distinct + scratch <= capacity;
}

scheduler::look_ahead scheduler::open_window(tier t, byte_count lead_divisor) {
  look_ahead w;
  w.capacity = tier_capacity(t == tier::device ? place::device : place::host);
  w.lead = w.capacity / lead_divisor;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const block_record& b = blocks_[i];
    const replica& r = t == tier::device ? b.device : b.host;
    if (r.valid() && !r.held() && !r.fixed && !b.moving && !b.in_place && !b.scratch) {
      w.best_victim = std::max(w.best_victim, next_use_.distance(i, cursor_));
    }
  }
  return w;
}

// What a step leaves behind becomes evictable; it counts when it is a better victim than what can be evicted now.
void scheduler::note_releases(const step_plan& step, std::uint32_t distance, look_ahead& device,
                              look_ahead& host) const {
  for (const block_access& a : step.blocks) {
    const block_record& b = blocks_[a.block];
    const std::uint32_t again =
        has(a.how, uses::free) ? plan::next_use::never : next_use_.distance_after(a.block, cursor_, distance);
    if (step.where == place::device && again >= device.best_victim) {
      device.released += b.bytes;
    }
    if (!b.host.fixed && (step.where == place::host || b.host.has_memory()) && again >= host.best_victim) {
      host.released += b.bytes;
    }
  }
}

scheduler::placed scheduler::place_ahead(std::uint32_t block, tier t, std::uint32_t distance, bool may_evict) {
  const replica& r = copy_of(blocks_[block], t);
  if (!may_evict && r.now == replica::state::absent) {
    return take_hole(block, t) ? placed::yes : placed::no;
  }
  return place_block(block, t, {need::kind::prefetch, distance});
}

bool scheduler::prefetch_device(const block_access& a, std::uint32_t distance, bool may_evict) {
  block_record& b = blocks_[a.block];
  if (b.device.valid() || b.device.now == replica::state::arriving || b.in_place || b.moving) {
    return true;
  }
  if (!needs_contents(a.how)) {
    return place_ahead(a.block, tier::device, distance, may_evict) != placed::no;
  }
  if (b.initialised == 0 || b.writers != 0) {
    incomplete_ = true;  // its contents are still being made
    return true;
  }
  const placed outcome = place_ahead(a.block, tier::device, distance, may_evict);
  if (outcome == placed::yes) {
    // A host copy on the way down is worth its memory when the block is used again before what it would displace.
    const std::uint32_t again = next_use_.distance_after(a.block, cursor_, distance);
    const bool keep = !b.host.valid() && b.stored && !modifies(a.how) &&
                      place_block(a.block, tier::host, {need::kind::spill, again}) == placed::yes;
    start_fetch(a.block, tier::device, 1 + std::uint64_t{distance}, keep);
  }
  return outcome != placed::no;
}

bool scheduler::prefetch_host(const block_access& a, std::uint32_t distance, bool may_evict) {
  block_record& b = blocks_[a.block];
  if (b.host.valid() || b.host.now == replica::state::arriving || b.in_place || b.moving) {
    return true;
  }
  if (needs_contents(a.how) && (b.initialised == 0 || b.writers != 0)) {
    incomplete_ = true;
    return true;
  }
  const placed outcome = place_ahead(a.block, tier::host, distance, may_evict);
  if (outcome == placed::yes && needs_contents(a.how)) {
    start_fetch(a.block, tier::host, 1 + std::uint64_t{distance}, false);
  }
  return outcome != placed::no;
}

}  // namespace forebay::detail
