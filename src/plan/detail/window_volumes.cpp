// What each link must move between two instants, at least, in every schedule.
//
// Let x be the instant "from" and y the instant "to" of a window, and let an item be "in" a tier while it has a valid
// copy there or one is arriving, since an arriving copy takes its room from the start. All four links are charged by
// the same argument. Some bytes are wanted, by a step inside the window, from above (H2D, storage read) or by anybody
// later, from below (D2H, storage write). Either they are in the tier above (the device; the device or the host) at all
// instants of an interval, or a transfer of them lies wholly inside the window. What can be in the tier at an instant
// is limited: by its capacity, less what the step that starts there takes itself. So the transfers are at least what
// can't be kept, and least_transfer() finds the most that can. Items are taken as divisible, which only helps the
// schedule.
//
// Different intervals of one item never share a transfer, because transfers for one end before the step at which the
// next begins. Windows that share no instants but their ends share no transfer, for each lies between its two instants:
// so the charges of the windows of a partition add up.
#include "plan/detail/window_volumes.hpp"

#include <algorithm>
#include <utility>

#include <forebay/plan/minimum_capacity.hpp>
#include <forebay/plan/packing.hpp>

namespace forebay::plan::detail {
namespace {

byte_count less(byte_count a, byte_count b) { return a > b ? a - b : 0; }

byte_count sum_without_overflow(byte_count a, byte_count b) {
  byte_count sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? ~byte_count{0} : sum;
}

bool dies(uses how) { return has(how, uses::free); }

}  // namespace

window_volumes::window_volumes(const trace& t, const machine& capacities, instants layout)
    : trace_(&t),
      stored_(!capacities.storage.empty()),
      device_capacity_(capacities.device_capacity),
      both_capacity_(sum_without_overflow(capacities.device_capacity, capacities.host_capacity)),
      in_(std::move(layout)),
      by_item_(t.item_bytes.size()) {
  for (std::int32_t s = 0; s < in_.steps * in_.cycles; ++s) {
    for (const item_access& a : in_.step(t, s).accesses) {
      by_item_[a.item].push_back({s, a.how, in_.step(t, s).where});
    }
  }
  for (std::int32_t x = 0; x < in_.per_cycle; ++x) {
    const std::int32_t s = in_.step_at[static_cast<std::size_t>(x)];
    const byte_count use = s < 0 ? 0 : working_set(t, static_cast<std::uint32_t>(s));
    both_use_.push_back(use);
    device_use_.push_back(s >= 0 && in_.step(t, s).where == place::device ? use : 0);
  }
}

// H2D. Let a and b be consecutive device accesses of an item, b needing the contents. If the item is not on the device
// at some instant after a's (or after x) and before b's, it is brought after that instant and before b starts. If a
// host step that starts after x modifies it in between, the device copy is stale whatever the room, and it is brought.
void window_volumes::add_h2d(packing_problem& p, window w, const visits& all, byte_count bytes) const {
  std::int32_t first = w.from;
  bool defined = true;  // there are contents to bring
  bool refetched = false;
  for (const visit& b : all) {
    if (b.where == place::host) {
      refetched = refetched || (modifies(b.how) && after(b) >= w.from);
      defined = (defined || modifies(b.how)) && !dies(b.how);
      continue;
    }
    const std::int32_t at = own(b);
    if (at > w.to) {
      break;
    }
    if (at >= w.from && needs_contents(b.how) && defined) {
      if (refetched) {
        p.forced.push_back({at, at, bytes});
      } else if (first < at) {
        p.intervals.push_back({first, at - 1, bytes});
      }
    }
    first = std::max(w.from, at + 1);
    defined = !dies(b.how);
    refetched = false;
  }
}

// D2H. Let j be a device step in the window that modifies an item, and u a later step that needs these contents. If u
// is on the host and has ended by y, they are copied before it starts. Else: if the device's copy is gone at an instant
// after j's, before u's (if u is on the device, where it takes the room itself at its own) or up to y (if u is on the
// host: it has started by then or still needs them), they were copied before that instant.
void window_volumes::add_d2h(packing_problem& p, window w, const visits& all, byte_count bytes) const {
  for (std::size_t j = 0; j < all.size(); ++j) {
    const visit& made = all[j];
    if (made.where != place::device || !modifies(made.how) || dies(made.how) || own(made) < w.from) {
      continue;
    }
    if (own(made) >= w.to) {
      break;
    }
    std::int32_t last = own(made);
    std::int32_t forced_at = -1;
    for (std::size_t i = j + 1; i < all.size(); ++i) {
      const visit& u = all[i];
      if (!needs_contents(u.how)) {
        break;
      }
      if (u.where == place::host && before(u) <= w.to) {
        forced_at = std::clamp(after(u), own(made), w.to);
        break;
      }
      last = u.where == place::host ? w.to : std::max(last, own(u) - 1);
      if (modifies(u.how) || dies(u.how)) {
        break;
      }
    }
    const interval kept{own(made) + 1, std::min(last, w.to), bytes};
    if (forced_at >= 0) {
      p.forced.push_back({forced_at, forced_at, bytes});
    } else if (kept.first <= kept.last) {
      p.intervals.push_back(kept);
      give_back(p, w, all, j, kept, true);
    }
  }
}

// Storage reads. Let a and b be consecutive accesses of an item, b needing the contents and starting by y. If the item
// is neither on the device nor on the host at an instant after x, after a's end and before b's start, it is read.
void window_volumes::add_storage_reads(packing_problem& p, window w, const visits& all, byte_count bytes) const {
  std::int32_t first = w.from;
  bool defined = true;
  for (const visit& b : all) {
    if (own(b) > w.to) {
      break;
    }
    if (own(b) < 0 && before(b) > w.to) {  // may come late: it is not charged, and hides nothing but what it makes
      defined = defined && needs_contents(b.how) && !dies(b.how);
      continue;
    }
    const std::int32_t last = own(b) >= 0 ? own(b) - 1 : after(b);
    if (needs_contents(b.how) && defined && first <= last) {
      p.intervals.push_back({first, last, bytes});
    }
    first = std::max(w.from, before(b));
    defined = !dies(b.how);
  }
}

// Storage writes. Let j start after x, end by y and modify an item, and let u be a later step that needs these
// contents. If the item is neither on the device nor on the host at an instant after j's end, up to u's start, it was
// written.
void window_volumes::add_storage_writes(packing_problem& p, window w, const visits& all, byte_count bytes) const {
  for (std::size_t j = 0; j < all.size(); ++j) {
    const visit& made = all[j];
    if (own(made) > w.to) {
      break;
    }
    if (!modifies(made.how) || dies(made.how) || after(made) < w.from || before(made) > w.to) {
      continue;
    }
    std::int32_t last = -1;
    for (std::size_t i = j + 1; i < all.size() && needs_contents(all[i].how); ++i) {
      last = std::max(last, own(all[i]) >= 0 ? own(all[i]) - 1 : after(all[i]));
      if (modifies(all[i].how) || dies(all[i].how)) {
        break;
      }
    }
    const interval kept{before(made), std::min(last, w.to), bytes};
    if (kept.first <= kept.last) {
      p.intervals.push_back(kept);
      give_back(p, w, all, j, kept, false);
    }
  }
}

// An interval that contains accesses of its own item is counted there twice: as kept, and in the step's own use. The
// room gets the latter back. (Where the item is not kept this allows a little too much: the bound stays one.)
void window_volumes::give_back(packing_problem& p, window w, const visits& all, std::size_t of, interval kept,
                               bool device_only) const {
  for (std::size_t i = of + 1; i < all.size(); ++i) {
    const std::int32_t at = own(all[i]);
    if (at > kept.last) {
      break;
    }
    if (at >= kept.first && (!device_only || all[i].where == place::device)) {
      byte_count& room = p.room[static_cast<std::size_t>(at - w.from)];
      room = sum_without_overflow(room, kept.bytes);
    }
  }
}

window_problems window_volumes::problems(std::int32_t from, std::int32_t to) const {
  window_problems all;
  for (packing_problem* p : {&all.h2d, &all.d2h, &all.storage_read, &all.storage_written}) {
    p->begin = from;
    p->room.resize(static_cast<std::size_t>(to - from) + 1);
    const bool device = p == &all.h2d || p == &all.d2h;
    for (std::int32_t x = from; x <= to; ++x) {
      const auto in_cycle = static_cast<std::size_t>(x % in_.per_cycle);
      p->room[static_cast<std::size_t>(x - from)] =
          device ? less(device_capacity_, device_use_[in_cycle]) : less(both_capacity_, both_use_[in_cycle]);
    }
  }
  const window w{from, to};
  for (std::size_t item = 0; item < by_item_.size(); ++item) {
    const byte_count bytes = trace_->item_bytes[item];
    add_h2d(all.h2d, w, by_item_[item], bytes);
    add_d2h(all.d2h, w, by_item_[item], bytes);
    if (stored_) {
      add_storage_reads(all.storage_read, w, by_item_[item], bytes);
      add_storage_writes(all.storage_written, w, by_item_[item], bytes);
    }
  }
  return all;
}

link_volume window_volumes::volumes(std::int32_t from, std::int32_t to) const {
  window_problems p = problems(from, to);
  return {least_transfer(std::move(p.h2d)), least_transfer(std::move(p.d2h)), least_transfer(std::move(p.storage_read)),
          least_transfer(std::move(p.storage_written))};
}

link_volume window_volumes::per_iteration() const {
  const std::int32_t cycles = in_.cycles - 2;
  const std::int32_t cycle = in_.per_cycle;
  window_problems p = problems(cycle, cycle * (cycles + 1));
  return {least_transfer_per_cycle(std::move(p.h2d), cycle, cycles),
          least_transfer_per_cycle(std::move(p.d2h), cycle, cycles),
          least_transfer_per_cycle(std::move(p.storage_read), cycle, cycles),
          least_transfer_per_cycle(std::move(p.storage_written), cycle, cycles)};
}

}  // namespace forebay::plan::detail
