#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

#include "least_ratio_cycle.hpp"
#include "situation_rules.hpp"

namespace forebay::plan::test {

/// The exact least time per iteration of a tiny trace, by searching the graph of all situations that a run can be in.
/// Nothing is shared with what plans, times or bounds.
///
/// A situation: which step each engine starts next and by how many iterations one leads; what runs, and for how long
/// still; where each item's copies are. From there anything that may start can start now (at a cost of zero), or time
/// goes on to the next end. That suffices: whatever starts waits for an end, or for room that a start at the same
/// instant frees. Copies are dropped when their room is needed, every minimal choice is tried. The least mean time per
/// iteration over all cycles of the graph is the optimum, over schedules that are not periodic as well.
class exhaustive_search : private situation_rules {
 public:
  exhaustive_search(const trace& t, const machine& m) : situation_rules(t, m) {}

  /// Seconds; none when nothing can run for ever. \throws std::invalid_argument when there is too much to search.
  [[nodiscard]] std::optional<double> least() {
    seed();
    for (std::uint32_t v = 0; v < situations_.size(); ++v) {
      if (situations_.size() > most_situations) {
        throw std::invalid_argument("too large for an exhaustive search");
      }
      const situation s = situations_[v];
      from_ = v;
      for (const std::size_t engine : {0U, 1U}) {
        try_step(s, engine);
      }
      for (item_index i = 0; i < trace_.item_bytes.size(); ++i) {
        try_transfers(s, i);
      }
      go_on(s);
    }
    const auto ratio = least_ratio_cycle(situations_.size(), edges_);
    return ratio ? std::optional<double>(*ratio / ticks_) : std::nullopt;
  }

 private:
  void reach(situation s, std::int64_t ticks, std::int64_t iterations) {
    for (item_index i = 0; i < trace_.item_bytes.size(); ++i) {  // copies of contents that nobody needs go at once
      for (const copies c : {copies::device, copies::host, copies::storage}) {
        if (has_copy(s, i, c) && !pinned(s, i, c) && dead(s, i)) {
          remove(s, i, c);
        }
      }
    }
    const auto found = number_.try_emplace(s, static_cast<std::uint32_t>(situations_.size()));
    if (found.second) {
      situations_.push_back(s);
    }
    if (from_ != nowhere) {
      edges_.push_back({from_, found.first->second, ticks, iterations});
    }
  }
  static void remove(situation& s, item_index i, copies c) {
    s.at[i] = static_cast<std::uint8_t>(without(static_cast<copies>(s.at[i]), c));
    s.path[i] = c == copies::storage ? 0 : s.path[i];
  }

  /// All beginnings at the device's first step with nothing in flight that no other dominates by having more copies.
  void seed() {
    const std::size_t items = trace_.item_bytes.size();
    const std::size_t choices = 4 * std::max(1U, paths_);
    std::size_t count = 1;
    for (std::size_t i = 0; i < items; ++i) {
      count *= choices;
    }
    from_ = nowhere;
    for (std::size_t c = 0; c < count; ++c) {
      situation s;
      std::size_t rest = c;
      for (item_index i = 0; i < items; ++i, rest /= choices) {
        const std::uint8_t stored = paths_ > 0 ? 4 : 0;
        s.at[i] = static_cast<std::uint8_t>(rest % 4) | stored;
        s.path[i] = static_cast<std::uint8_t>(rest % choices / 4);
      }
      if (used(s, copies::device) <= machine_.device_capacity && used(s, copies::host) <= machine_.host_capacity &&
          maximal(s)) {
        seed_positions(s);
      }
    }
  }
  [[nodiscard]] bool maximal(const situation& s) const {
    for (item_index i = 0; i < trace_.item_bytes.size(); ++i) {
      for (const copies tier : {copies::device, copies::host}) {
        if (!has_copy(s, i, tier) && used(s, tier) + trace_.item_bytes[i] <= capacity(tier)) {
          return false;
        }
      }
    }
    return true;
  }
  void seed_positions(situation s) {
    for (std::uint8_t h = 0; h < std::max<std::size_t>(1, program_[1].size()); ++h) {
      for (const int lead : {-1, 0, 1}) {
        if (lead == 0 || (!program_[0].empty() && !program_[1].empty())) {
          s.next[1] = h;
          s.lead = static_cast<std::int8_t>(lead);
          bool there = true;
          for (item_index i = 0; i < trace_.item_bytes.size(); ++i) {
            there = there && (s.at[i] != 0 || dead(s, i));
          }
          if (there) {
            reach(s, 0, 0);
          }
        }
      }
    }
  }

  void try_step(const situation& s, std::size_t engine) {
    if (program_[engine].empty() || s.runs[engine] != nobody || !in_turn(s, engine)) {
      return;
    }
    const std::uint32_t step = program_[engine][s.next[engine]];
    const copies tier = tier_of(engine);
    byte_count needs = 0;
    situation after = s;
    for (const item_access& a : trace_.steps[step].accesses) {
      if ((needs_contents(a.how) && !has_copy(s, a.item, tier)) || (changes(a.how) && in_flight(s, a.item))) {
        return;
      }
      needs += has_copy(s, a.item, tier) ? 0 : trace_.item_bytes[a.item];
      if (changes(a.how)) {
        after.at[a.item] = static_cast<std::uint8_t>(tier);
        after.path[a.item] = 0;
      }
    }
    after.runs[engine] = static_cast<std::uint8_t>(step);
    after.left[engine] = ticks_of(trace_.steps[step].seconds);
    after.next[engine] = static_cast<std::uint8_t>((s.next[engine] + 1) % program_[engine].size());
    const bool wraps = after.next[engine] == 0;
    const bool both = !program_[1 - engine].empty();
    const int sign = engine == 0 ? 1 : -1;
    after.lead = static_cast<std::int8_t>(s.lead + (wraps && both ? sign : 0));
    if (s.lead * sign > 1) {
      return;  // it would be two iterations ahead of what the other starts next
    }
    const bool counts = engine == 0 || program_[0].empty();
    start(after, engine, tier, needs > 0, wraps && counts ? 1 : 0);
  }
  /// No earlier step of the other engine that conflicts is still to end.
  [[nodiscard]] bool in_turn(const situation& s, std::size_t engine) const {
    const std::uint32_t step = program_[engine][s.next[engine]];
    const std::size_t other = 1 - engine;
    const when now{iteration(s, engine), step};
    for (std::size_t k = 0; k < program_[other].size(); ++k) {
      if (first(s, other, k, true) < now) {
        for (const item_access& a : trace_.steps[step].accesses) {
          const uses theirs = access_of(program_[other][k], a.item);
          if (theirs != uses::none && (changes(theirs) || changes(a.how))) {
            return false;
          }
        }
      }
    }
    return true;
  }

  void try_transfers(const situation& s, item_index i) {
    if (dead(s, i) || being_changed(s, i)) {
      return;
    }
    try_transfer(s, i, link::h2d, 2);
    try_transfer(s, i, link::d2h, 3);
    for (std::uint8_t p = 0; p < paths_; ++p) {
      const std::size_t engine = 4 + 2 * p;
      if (s.path[i] == p) {
        try_transfer(s, i, link::storage_read, engine);
      }
      situation moved = s;  // a copy on the other path may go for one on this
      if (has_copy(s, i, copies::storage) && s.path[i] != p && !pinned(s, i, copies::storage)) {
        remove(moved, i, copies::storage);
      }
      try_transfer(moved, i, link::storage_write, engine + (machine_.half_duplex_storage ? 0 : 1));
    }
  }
  void try_transfer(const situation& s, item_index i, link l, std::size_t engine) {
    const copies to = target_of(l);
    bool arrives = false;
    for (std::size_t e = 2; e < engines; ++e) {
      arrives = arrives || (s.runs[e] != nobody && s.runs[e] % 8 == i && target_of(over(s.runs[e], e)) == to);
    }
    if (s.runs[engine] != nobody || !has_copy(s, i, source_of(l)) || has_copy(s, i, to) || arrives) {
      return;
    }
    const bool write = l == link::storage_write;
    situation after = s;
    after.runs[engine] = static_cast<std::uint8_t>((write ? 8 : 0) + i);
    after.left[engine] = ticks_of(seconds(i, engine, write));
    start(after, engine, to, to != copies::storage, 0);
  }

  /// With every minimal choice of copies to drop from the tier, where there is not enough room.
  void start(const situation& s, std::size_t engine, copies tier, bool needs_room, std::int64_t iterations) {
    situation begun = s;
    if (engine < 2) {  // what it makes is there from the start
      for (const item_access& a : trace_.steps[s.runs[engine]].accesses) {
        begun.at[a.item] = s.at[a.item] | static_cast<std::uint8_t>(tier);
      }
    }
    std::vector<item_index> may_go;
    for (item_index i = 0; needs_room && i < trace_.item_bytes.size(); ++i) {
      if (has_copy(begun, i, tier) && begun.at[i] != static_cast<std::uint8_t>(tier) && !pinned(begun, i, tier)) {
        may_go.push_back(i);
      }
    }
    const byte_count held = used(begun, tier);
    for (std::uint32_t set = 0; set < (1U << may_go.size()); ++set) {
      situation after = begun;
      byte_count gone = 0;
      byte_count smallest = held + 1;
      for (std::size_t k = 0; k < may_go.size(); ++k) {
        if ((set >> k & 1U) != 0) {
          remove(after, may_go[k], tier);
          gone += trace_.item_bytes[may_go[k]];
          smallest = std::min(smallest, trace_.item_bytes[may_go[k]]);
        }
      }
      const bool fits = !needs_room || held - gone <= capacity(tier);
      const bool minimal = set == 0 || held - gone + smallest > capacity(tier);
      if (fits && minimal) {
        if (after.left[engine] == 0) {
          finish(after, engine);
        }
        reach(after, 0, iterations);
      }
    }
  }
  void finish(situation& s, std::size_t engine) const {
    const std::uint8_t what = s.runs[engine];
    if (engine < 2) {
      for (const item_access& a : trace_.steps[what].accesses) {
        s.at[a.item] = has(a.how, uses::free) ? 0 : s.at[a.item];
      }
    } else {
      const copies to = target_of(over(what, engine));
      s.at[what % 8] |= static_cast<std::uint8_t>(to);
      s.path[what % 8] = to == copies::storage ? static_cast<std::uint8_t>((engine - 4) / 2) : s.path[what % 8];
    }
    s.runs[engine] = nobody;
  }
  /// To the next instant at which something ends.
  void go_on(const situation& s) {
    std::uint8_t ticks = 255;
    for (std::size_t e = 0; e < engines; ++e) {
      ticks = s.runs[e] != nobody ? std::min(ticks, s.left[e]) : ticks;
    }
    if (ticks == 255) {
      return;
    }
    situation after = s;
    for (std::size_t e = 0; e < engines; ++e) {
      if (s.runs[e] != nobody) {
        after.left[e] = static_cast<std::uint8_t>(s.left[e] - ticks);
        if (after.left[e] == 0) {
          finish(after, e);
        }
      }
    }
    reach(after, ticks, 0);
  }

  static constexpr std::uint32_t nowhere = 0xffffffffU;
  static constexpr std::size_t most_situations = 1000000;
  std::vector<situation> situations_;
  std::unordered_map<situation, std::uint32_t, situation_hash, situation_equal> number_;
  std::vector<ratio_edge> edges_;
  std::uint32_t from_ = nowhere;
};

}  // namespace forebay::plan::test
