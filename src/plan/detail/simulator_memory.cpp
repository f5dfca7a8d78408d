// Room, victims and moves.
#include "plan/detail/simulator.hpp"

#include <algorithm>
#include <utility>

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
  const std::optional<std::vector<item_index>> victims = victims_for(i, tier, reason, distance);
  if (!victims) {
    return placed::no;
  }
  c.now = state::placing;
  c.missing = static_cast<std::int64_t>(bytes_[i]);
  changed_ = true;
  for (const item_index v : *victims) {
    items_[v].copies[tier].victim_of = i;
    touch(v);
  }
  credit(i, tier, std::exchange(free_[tier], 0));
  for (const item_index v : *victims) {
    evict(v, tier, reason == why::request ? 0 : 1 + std::uint64_t{distance});
  }
  return c.has_memory() ? placed::yes : placed::pending;
}

/// Whom to evict: furthest next use first, among equals what costs no write; a prefetch or a spill only takes room from
/// what is used later than itself. Nothing when that is not enough.
std::optional<std::vector<item_index>> simulator::victims_for(item_index i, std::size_t tier, why reason,
                                                              std::uint32_t distance) const {
  std::vector<item_index> victims;
  byte_count room = free_[tier];
  const auto& by_use = by_next_use_[tier];
  for (auto at = by_use.rbegin(); at != by_use.rend() && room < bytes_[i];) {
    const std::uint64_t next = at->first;
    if (reason != why::request && next <= granted_ + distance) {
      break;
    }
    std::vector<item_index> group;
    for (; at != by_use.rend() && at->first == next; ++at) {
      if (at->second != i && (reason != why::spill || can_drop(at->second, tier))) {
        group.push_back(at->second);
      }
    }
    std::stable_partition(group.begin(), group.end(), [&](item_index v) { return can_drop(v, tier); });
    for (std::size_t k = 0; k < group.size() && room < bytes_[i]; ++k) {
      room += bytes_[group[k]];
      victims.push_back(group[k]);
    }
  }
  const item_index last = scratch(tier);  // the next step will want it: for requests only
  if (room < bytes_[i] && reason == why::request && last != i && can_evict(last, tier)) {
    room += bytes_[last];
    victims.push_back(last);
  }
  return room < bytes_[i] ? std::nullopt : std::optional(std::move(victims));
}

bool simulator::can_evict(item_index i, std::size_t tier) const {
  const item& v = items_[i];
  const copy& c = v.copies[tier];
  return (c.now == state::present || c.now == state::placed) && c.pins == 0 && !c.wanted && c.victim_of == nobody &&
         !v.moving && bytes_[i] > 0 && !(two_tiers_ && tier == host);
}

std::uint64_t simulator::next_use_of(item_index i) const {
  const std::uint32_t distance = next_use_.distance(i, cursor_);
  return distance == next_use::never ? std::numeric_limits<std::uint64_t>::max() : granted_ + distance;
}

/// To be called after every change of what can_evict() depends on.
void simulator::touch(item_index i) {
  if (i >= trace_.item_bytes.size()) {
    return;
  }
  for (const std::size_t tier : {device, host}) {
    if (can_evict(i, tier)) {
      by_next_use_[tier].emplace(next_use_at_[i], i);
    } else {
      by_next_use_[tier].erase({next_use_at_[i], i});
    }
  }
}

void simulator::note_next_use(item_index i) {
  const std::uint64_t next = next_use_of(i);
  for (auto& by_use : by_next_use_) {
    if (by_use.erase({next_use_at_[i], i}) > 0) {
      by_use.emplace(next, i);
    }
  }
  next_use_at_[i] = next;
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
  touch(i);
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
    touch(claimant);
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
  for (item_index v = 0; v < items_.size(); ++v) {
    if (items_[v].copies[tier].victim_of == claimant) {
      items_[v].copies[tier].victim_of = nobody;
      touch(v);
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
    touch(i);
    changed_ = true;
    return;
  }
  to.now = state::arriving;
  it.moving = true;
  launch(move);
}

void simulator::launch(simulated_move move) {
  move.sequence = sequence_++;
  touch(move.item);
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
  touch(move.item);
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

}  // namespace forebay::plan::detail
