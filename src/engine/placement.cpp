// Memory for blocks: holes, victims and claims.
#include <cstring>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

std::byte* scheduler::address(tier t, extent place) const {
  return (t == tier::device ? device_.arena().data() : host_memory_.data()) + place.offset;
}

bool scheduler::take_hole(std::uint32_t block, tier t) {
  block_record& b = blocks_[block];
  replica& r = copy_of(b, t);
  FOREBAY_ASSERT(r.now == replica::state::absent);
  if (!r.fixed) {
    const std::optional<extent> place = b.scratch && follow_.active
                                            ? take_kept_workspace(block, t)
                                            : arena(t).allocate(b.bytes, {occupant::kind::block, block, b.bytes});
    if (!place) {
      return false;
    }
    r.place = *place;
  }
  r.now = replica::state::placed;
  changed_table_ = true;
  return true;
}

// While a schedule is followed, workspaces have a place of their own at the end of the tier.
std::optional<extent> scheduler::take_kept_workspace(std::uint32_t block, tier t) {
  const byte_count bytes = follow_.workspace[t == tier::device ? 0 : 1];
  const occupant who{occupant::kind::block, block, bytes};
  if (bytes == 0) {
    return arena(t).allocate(blocks_[block].bytes, who);
  }
  const extent place{arena(t).capacity() - bytes, bytes};
  if (arena(t).allocate_at(place, who)) {
    return place;
  }
  return follow_.strict ? std::nullopt : arena(t).allocate(bytes, who);
}

scheduler::placed scheduler::place_block(std::uint32_t block, tier t, need why) {
  block_record& b = blocks_[block];
  replica& r = copy_of(b, t);
  if (r.has_memory()) {
    return placed::yes;
  }
  if (r.now == replica::state::placing) {
    return placed::pending;
  }
  if (take_hole(block, t)) {
    return placed::yes;
  }
  const std::optional<window> found = arena(t).find_window(
      b.bytes, [&](byte_count offset, const occupant& who) { return victim_score(t, offset, who, why); });
  if (!found) {
    return placed::no;
  }
  changed_table_ = true;
  r.now = replica::state::placing;
  r.claim = found->region;
  arena(t).claim_holes(found->region, block);
  std::vector<std::uint32_t> victims;
  for (const byte_count offset : found->victims) {
    victims.push_back(arena(t).occupants().at(offset).index);
  }
  for (const std::uint32_t victim : victims) {
    copy_of(blocks_[victim], t).victim_of = block;
  }
  const std::uint64_t priority = why.what == need::kind::request ? 0 : 1 + std::uint64_t{why.distance};
  for (const std::uint32_t victim : victims) {
    evict(victim, t, priority);
  }
  return r.has_memory() ? placed::yes : placed::pending;
}

std::optional<std::uint64_t> scheduler::victim_score(tier t, byte_count /*offset*/, const occupant& who, need why) {
  if (who.what != occupant::kind::block) {
    return std::nullopt;
  }
  block_record& b = blocks_[who.index];
  const replica& r = copy_of(b, t);
  const bool movable = r.now == replica::state::present || r.now == replica::state::placed;
  if (!movable || r.fixed || r.held() || b.spill_waits || r.victim_of != no_block || b.moving || b.in_place) {
    return std::nullopt;
  }
  if (t == tier::host && b.device.victim_of != no_block) {
    return std::nullopt;  // its device copy is leaving, and may rely on this one
  }
  const bool at_once = can_drop_at_once(b, t);
  if (b.scratch) {  // the next lease of its stream will want it: only a request may take it
    return why.what == need::kind::request ? std::optional<std::uint64_t>(1) : std::nullopt;
  }
  const std::uint32_t distance = next_use_.distance(who.index, cursor_);
  if (why.what != need::kind::request && distance != plan::next_use::never && distance <= why.distance) {
    return std::nullopt;
  }
  if (why.what == need::kind::spill && !at_once) {
    return std::nullopt;
  }
  return 2 + 2 * std::uint64_t{distance} + (at_once ? 1 : 0);  // furthest next use; among equals, what costs no write
}

bool scheduler::can_drop_at_once(const block_record& b, tier t) const {
  const replica& r = t == tier::device ? b.device : b.host;
  if (!r.valid() || b.initialised == 0 || b.stored || b.zero) {
    return true;
  }
  if (t == tier::device) {
    return b.host.valid();
  }
  // A copy on the device makes the host's redundant only when the device keeps it until the block's next use. Otherwise
  // the smaller tier would soon have to send it down again.
  return b.device.valid() && next_use_.distance(b.index, cursor_) < device_rests_;
}

void scheduler::evict(std::uint32_t block, tier t, std::uint64_t priority) {
  if (can_drop_at_once(blocks_[block], t)) {
    drop_copy(block, t);
  } else {
    start_spill(block, t, priority);
  }
}

void scheduler::evict_now(std::uint32_t block, tier t) {
  if (can_drop_at_once(blocks_[block], t)) {
    drop_copy(block, t);
  } else if (store_ != nullptr) {
    spill_to_storage(block, t, 0);
  } else {
    start_spill(block, t, 0);  // its home in the host tier is always there
  }
}

void scheduler::drop_copy(std::uint32_t block, tier t) {
  block_record& b = blocks_[block];
  replica& r = copy_of(b, t);
  FOREBAY_ASSERT(r.has_memory() && r.pins == 0 && !b.moving);
  r.now = replica::state::absent;
  changed_table_ = true;
  if (r.fixed) {
    return;
  }
  poison(t, r.place);
  if (r.victim_of == no_block) {
    arena(t).free(r.place);
    return;
  }
  const std::uint32_t claimant = r.victim_of;
  r.victim_of = no_block;
  arena(t).rename(r.place, {occupant::kind::claim, claimant, 0});
  settle_if_complete(claimant, t);
}

void scheduler::settle_if_complete(std::uint32_t block, tier t) {
  block_record& b = blocks_[block];
  replica& r = copy_of(b, t);
  FOREBAY_ASSERT(r.now == replica::state::placing);
  if (arena(t).claimed_bytes(r.claim, block) != r.claim.bytes) {
    return;
  }
  r.place = arena(t).settle_claim(r.claim, b.bytes, {occupant::kind::block, block, 0});
  r.now = replica::state::placed;
  changed_table_ = true;
}

void scheduler::cancel_claim(std::uint32_t block, tier t) {
  replica& r = copy_of(blocks_[block], t);
  FOREBAY_ASSERT(r.now == replica::state::placing);
  for (const auto& [offset, who] : arena(t).occupants()) {
    if (who.what == occupant::kind::block && copy_of(blocks_[who.index], t).victim_of == block) {
      copy_of(blocks_[who.index], t).victim_of = no_block;
    }
  }
  arena(t).drop_claim(r.claim, block);
  r.now = replica::state::absent;
  changed_table_ = true;
}

void scheduler::cancel_unwanted_claims(tier t) {
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const replica& r = copy_of(blocks_[i], t);
    if (r.now == replica::state::placing && r.wanted == 0) {
      cancel_claim(i, t);
    }
  }
}

void scheduler::poison(tier t, extent place) {
  if (!poison_) {
    return;
  }
  if (t == tier::device) {
    device_.fill(address(t, place), std::byte{0xff}, place.bytes);
  } else {
    std::memset(address(t, place), 0xff, place.bytes);
  }
}

}  // namespace forebay::detail
