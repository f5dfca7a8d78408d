// Room, victims, moves and the look-ahead.
#include "plan/detail/simulator.hpp"

#include <algorithm>
#include <utility>

#include <forebay/plan/packing.hpp>

namespace forebay::plan::detail {

simulator::placed simulator::place_item(item_index i, std::size_t tier, why reason, std::uint32_t distance) {
  copy& c = items_[i].copies[tier];
  if (c.has_memory()) {
    return placed::yes;
  }
  if (c.now == state::placing) {
    return placed::pending;
  }
  if (two_tiers_ && tier == host) {  // everything has its home there
    c.now = state::placed;
    changed_ = true;
    return placed::yes;
  }
  std::vector<std::pair<std::uint64_t, item_index>> victims;
  if (free_[tier] < bytes_[i]) {
    for (item_index v = 0; v < items_.size(); ++v) {
      if (const std::uint64_t score = v == i ? 0 : victim_score(v, tier, reason, distance); score > 0) {
        victims.emplace_back(score, v);
      }
    }
    std::sort(victims.begin(), victims.end(), std::greater<>());
  }
  byte_count room = free_[tier];
  std::size_t needed = 0;
  while (room < bytes_[i] && needed < victims.size()) {
    room += bytes_[victims[needed++].second];
  }
  if (room < bytes_[i]) {
    return placed::no;
  }
  victims.resize(needed);
  c.now = state::placing;
  c.missing = static_cast<std::int64_t>(bytes_[i]);
  changed_ = true;
  for (const auto& [score, v] : victims) {
    items_[v].copies[tier].victim_of = i;
  }
  credit(i, tier, std::exchange(free_[tier], 0));
  for (const auto& [score, v] : victims) {
    evict(v, tier, reason == why::request ? 0 : 1 + std::uint64_t{distance});
  }
  return c.has_memory() ? placed::yes : placed::pending;
}

/// Furthest next use first, among equals what costs no write; 0: not to be evicted.
std::uint64_t simulator::victim_score(item_index i, std::size_t tier, why reason, std::uint32_t distance) const {
  const item& v = items_[i];
  const copy& c = v.copies[tier];
  if ((c.now != state::present && c.now != state::placed) || c.pins > 0 || c.wanted || c.victim_of != nobody ||
      v.moving || bytes_[i] == 0 || (two_tiers_ && tier == host)) {
    return 0;
  }
  if (i >= trace_.item_bytes.size()) {  // scratch: the next step will want it
    return reason == why::request ? 1 : 0;
  }
  const bool at_once = can_drop(i, tier);
  const std::uint32_t next = next_use_.distance(i, cursor_);
  if ((reason != why::request && next != next_use::never && next <= distance) || (reason == why::spill && !at_once)) {
    return 0;
  }
  return 2 + 2 * std::uint64_t{next} + (at_once ? 1 : 0);
}

bool simulator::can_drop(item_index i, std::size_t tier) const {
  const item& v = items_[i];
  return v.copies[tier].now == state::placed || !v.defined || v.stored || v.copies[1 - tier].now == state::present ||
         i >= trace_.item_bytes.size();
}

void simulator::evict(item_index i, std::size_t tier, std::uint64_t priority) {
  if (can_drop(i, tier)) {
    drop(i, tier);
  } else {
    spill(i, tier, priority);
  }
}

void simulator::drop(item_index i, std::size_t tier) {
  copy& c = items_[i].copies[tier];
  c.now = state::absent;
  changed_ = true;
  if (two_tiers_ && tier == host) {
    return;
  }
  if (const item_index claimant = std::exchange(c.victim_of, nobody); claimant != nobody) {
    credit(claimant, tier, bytes_[i]);
  } else {
    free_[tier] += bytes_[i];
  }
}

void simulator::credit(item_index claimant, std::size_t tier, byte_count bytes) {
  copy& c = items_[claimant].copies[tier];
  c.missing -= static_cast<std::int64_t>(bytes);
  if (c.now == state::placing && c.missing <= 0) {
    free_[tier] += static_cast<byte_count>(-c.missing);
    c.missing = 0;
    c.now = state::placed;
    changed_ = true;
  } else if (c.now != state::placing) {  // it has its room, or the claim was cancelled
    free_[tier] += static_cast<byte_count>(-c.missing);
    c.missing = 0;
  }
}

void simulator::cancel_claim(item_index claimant, std::size_t tier) {
  copy& c = items_[claimant].copies[tier];
  if (c.now != state::placing) {
    return;  // other victims gave enough
  }
  for (item& v : items_) {
    if (v.copies[tier].victim_of == claimant) {
      v.copies[tier].victim_of = nobody;
    }
  }
  free_[tier] += bytes_[claimant] - static_cast<byte_count>(c.missing);
  c.missing = 0;
  c.now = state::absent;
  changed_ = true;
}

void simulator::spill(item_index i, std::size_t tier, std::uint64_t priority) {
  simulated_move move;
  move.item = i;
  move.priority = priority;
  move.spill = true;
  move.from_device = tier == device;
  items_[i].moving = true;
  if (tier == host) {
    move.stages = {link::storage_write};
  } else {
    const std::uint32_t distance = next_use_.distance(i, cursor_);
    move.to_host = place_item(i, host, why::spill, distance) == placed::yes;
    move.stages = {link::d2h, link::storage_write};
    move.stage_count = move.to_host ? 1 : 2;
    if (move.to_host) {
      items_[i].copies[host].now = state::arriving;
    }
  }
  launch(move);
}

void simulator::fetch(item_index i, std::size_t tier, std::uint64_t priority, bool keep_host) {
  item& it = items_[i];
  copy& to = it.copies[tier];
  simulated_move move;
  move.item = i;
  move.priority = priority;
  if (it.copies[1 - tier].now == state::present) {
    move.stages = {tier == device ? link::h2d : link::d2h};
  } else if (it.stored) {
    move.stages = {link::storage_read, link::h2d};
    move.stage_count = tier == device ? 2 : 1;
    move.keeps_host = tier == device && keep_host;
    if (move.keeps_host) {
      it.copies[host].now = state::arriving;
    }
  } else {  // nothing was ever put there: no bytes to move
    to.now = state::present;
    changed_ = true;
    return;
  }
  to.now = state::arriving;
  it.moving = true;
  launch(move);
}

void simulator::launch(simulated_move move) {
  move.sequence = sequence_++;
  links_.enqueue(move);
  changed_ = true;
}

void simulator::end_move(const simulated_move& move) {
  item& it = items_[move.item];
  it.moving = false;
  changed_ = true;
  if (!move.spill) {
    for (copy& c : it.copies) {
      c.now = c.now == state::arriving ? state::present : c.now;
    }
  } else {
    copy& from = it.copies[move.from_device ? device : host];
    if (move.to_host) {
      it.copies[host].now = state::present;
    } else {
      it.stored = true;
    }
    if (from.pins == 0 && !from.wanted) {
      drop(move.item, move.from_device ? device : host);
    } else if (from.victim_of != nobody) {  // a step wants it after all: it stays
      cancel_claim(from.victim_of, move.from_device ? device : host);
      from.victim_of = nobody;
    }
  }
  drop_if_dead(move.item);
}

void simulator::drop_if_dead(item_index i) {
  item& it = items_[i];
  if (it.defined || it.moving || i >= trace_.item_bytes.size()) {
    return;
  }
  it.stored = false;
  for (const std::size_t tier : {device, host}) {
    if (it.copies[tier].now == state::present && it.copies[tier].pins == 0 && !it.copies[tier].wanted) {
      drop(i, tier);
    }
  }
}

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
