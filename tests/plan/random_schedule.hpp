#pragma once

#include <optional>
#include <random>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

#include "random_trace.hpp"

namespace forebay::plan::test {

/// Valid schedules without any wit: each step's items are brought on demand, copies that nobody needs are dropped at
/// random or when room is short, and at the end everything goes home (to storage when there is any).
class random_schedule {
 public:
  random_schedule(std::mt19937& random, const trace& t, const machine& m) : random_(random), trace_(t), machine_(m) {
    home_ = m.storage.empty() ? copies::host : copies::storage;
    next_.assign(t.item_bytes.size(), 1);
    for (std::size_t s = t.steps.size(); s-- > 0;) {
      note_next(s);
    }
  }

  /// None when it does not find room.
  std::optional<schedule> make() {
    schedule s;
    const std::size_t items = trace_.item_bytes.size();
    for (std::size_t i = 0; i < items; ++i) {
      s.at_start.push_back(next_[i] != 0 ? home_ : copies::none);
      s.stored_on.push_back(machine_.storage.empty() ? 0 : below(random_, paths()));
    }
    at_ = s.at_start;
    path_ = s.stored_on;
    operations_.clear();
    for (std::uint32_t k = 0; k < trace_.steps.size(); ++k) {
      if (!step(k)) {
        return std::nullopt;
      }
    }
    pinned_.assign(items, 0);
    for (item_index i = 0; i < items; ++i) {
      if (at_[i] != copies::none && !go_home(i, s.stored_on[i])) {
        return std::nullopt;
      }
    }
    s.operations = operations_;
    return s;
  }

 private:
  [[nodiscard]] std::uint32_t paths() const { return static_cast<std::uint32_t>(machine_.storage.size()); }
  void note_next(std::size_t s) {
    for (const item_access& a : trace_.steps[s].accesses) {
      next_[a.item] = needs_contents(a.how) ? 1 : 0;
    }
  }
  [[nodiscard]] byte_count used(copies tier) const {
    byte_count all = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      all += has(at_[i], tier) ? trace_.item_bytes[i] : 0;
    }
    return all;
  }
  [[nodiscard]] byte_count capacity(copies tier) const {
    return tier == copies::device ? machine_.device_capacity : machine_.host_capacity;
  }
  void drop(item_index i, copies tier) {
    operations_.push_back(drop_copy(i, tier));
    at_[i] = without(at_[i], tier);
  }
  bool bring(item_index i, link over) {
    const copies to = target_of(over);
    if (to == copies::storage) {
      path_[i] = below(random_, paths());
    } else if (!make_room(to, trace_.item_bytes[i])) {
      return false;
    }
    const bool stored = over == link::storage_read || over == link::storage_write;
    operations_.push_back(move_item(i, over, stored ? path_[i] : 0));
    at_[i] = at_[i] | to;
    return true;
  }
  /// Takes unpinned copies out of a tier, from a random one on, until there is room.
  bool make_room(copies tier, byte_count bytes) {
    const auto items = static_cast<std::uint32_t>(at_.size());
    const std::uint32_t from = below(random_, items);
    for (std::uint32_t k = 0; k < items && used(tier) + bytes > capacity(tier); ++k) {
      const item_index i = (from + k) % items;
      if (!has(at_[i], tier) || pinned_[i] != 0) {
        continue;
      }
      pinned_[i] = 1;
      if (at_[i] == tier) {
        if (!bring(i, tier == copies::device ? link::d2h : link::storage_write)) {
          return false;
        }
      }
      pinned_[i] = 0;
      drop(i, tier);
    }
    return used(tier) + bytes <= capacity(tier);
  }
  bool fetch(item_index i, copies tier) {
    if (has(at_[i], tier)) {
      return true;
    }
    if (tier == copies::device) {
      return fetch(i, copies::host) && bring(i, link::h2d);
    }
    return bring(i, has(at_[i], copies::device) ? link::d2h : link::storage_read);
  }
  bool step(std::uint32_t k) {
    const trace_step& s = trace_.steps[k];
    const copies tier = s.where == place::device ? copies::device : copies::host;
    pinned_.assign(at_.size(), 0);
    for (const item_access& a : s.accesses) {
      pinned_[a.item] = 1;
    }
    byte_count made = (s.workspace + 4095) / 4096 * 4096;
    for (const item_access& a : s.accesses) {
      if (needs_contents(a.how) && !fetch(a.item, tier)) {
        return false;
      }
      made += has(at_[a.item], tier) ? 0 : trace_.item_bytes[a.item];
    }
    if (!make_room(tier, made)) {
      return false;
    }
    operations_.push_back(run_step(k));
    for (const item_access& a : s.accesses) {
      at_[a.item] = has(a.how, uses::free) ? copies::none : (modifies(a.how) ? tier : (at_[a.item] | tier));
    }
    after(k);
    return true;
  }
  /// Drops some copies: dead ones all, redundant ones by chance.
  void after(std::uint32_t k) {
    for (const item_access& a : trace_.steps[k].accesses) {
      std::uint32_t next = 0;
      for (std::size_t s = 1; s <= trace_.steps.size() && next == 0; ++s) {
        for (const item_access& b : trace_.steps[(k + s) % trace_.steps.size()].accesses) {
          next = b.item == a.item ? (needs_contents(b.how) ? 1U : 2U) : next;
        }
      }
      for (const copies tier : {copies::device, copies::host, copies::storage}) {
        if (has(at_[a.item], tier) && (next == 2 || (at_[a.item] != tier && below(random_, 4) == 0))) {
          drop(a.item, tier);
        }
      }
    }
  }
  bool go_home(item_index i, std::uint32_t path) {
    pinned_[i] = 1;
    if (!has(at_[i], copies::host) && at_[i] != home_ && !fetch(i, copies::host)) {
      return false;
    }
    if (home_ == copies::storage && has(at_[i], home_) && path_[i] != path) {
      if (!fetch(i, copies::host)) {
        return false;
      }
      drop(i, home_);
    }
    if (!has(at_[i], home_)) {
      operations_.push_back(move_item(i, link::storage_write, path));
      path_[i] = path;
      at_[i] = at_[i] | home_;
    }
    for (const copies tier : {copies::device, copies::host}) {
      if (tier != home_ && has(at_[i], tier)) {
        drop(i, tier);
      }
    }
    pinned_[i] = 0;
    return true;
  }

  std::mt19937& random_;
  const trace& trace_;
  const machine& machine_;
  copies home_;
  std::vector<std::uint8_t> next_;
  std::vector<copies> at_;
  std::vector<std::uint32_t> path_;
  std::vector<std::uint8_t> pinned_;
  std::vector<operation> operations_;
};

}  // namespace forebay::plan::test
