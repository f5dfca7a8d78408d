// Moves of blocks between tiers: how they start and what follows from their end.
#include <cstring>
#include <utility>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

void scheduler::launch(block_move m) {
  block_record& b = blocks_[m.block];
  FOREBAY_ASSERT(!b.moving && !b.in_place);
  b.moving = true;
  quiet_ = false;
  changed_table_ = true;
  m.bytes = b.bytes;
  m.name = b.name;
  if (b.device.has_memory()) {
    m.device = address(tier::device, b.device.place);
  }
  m.page = b.page;
  const auto [it, inserted] = moves_.emplace(m.block, m);
  FOREBAY_ASSERT(inserted);
  mover_->start(it->second);
}

void scheduler::start_fetch(std::uint32_t block, tier t, std::uint64_t priority, bool keep_host) {
  block_record& b = blocks_[block];
  replica& to = copy_of(b, t);
  FOREBAY_ASSERT(to.now == replica::state::placed);
  block_move m;
  m.block = block;
  m.priority = priority;
  const bool from_other = t == tier::device ? b.host.valid() : b.device.valid();
  if (from_other) {
    m.way = t == tier::device ? route::host_to_device : route::device_to_host;
    m.host = address(tier::host, b.host.place);
  } else if (b.stored) {
    m.way = t == tier::device ? route::storage_to_device : route::storage_to_host;
    if (t == tier::host || keep_host) {
      m.host = address(tier::host, b.host.place);
    }
    if (t == tier::device && keep_host) {
      m.keeps_host = true;
      b.host.now = replica::state::arriving;
    }
  } else {
    FOREBAY_ASSERT(b.zero);
    if (t == tier::device) {
      device_.fill(address(t, to.place), std::byte{0}, b.bytes);
    } else {
      std::memset(address(t, to.place), 0, b.bytes);
    }
    to.now = replica::state::present;
    changed_table_ = true;
    return;
  }
  to.now = replica::state::arriving;
  launch(m);
}

// Off the device a block goes to the host tier when something there is used even later; what it displaces may have to
// be written first, and then the spill waits for its place. Otherwise it goes to storage.
void scheduler::start_spill(std::uint32_t block, tier from, std::uint64_t priority) {
  block_record& b = blocks_[block];
  if (from == tier::host) {
    spill_to_storage(block, from, priority);
    return;
  }
  const std::uint32_t distance = next_use_.distance(block, cursor_);
  const need why{need::kind::prefetch, distance};
  const placed outcome = store_ == nullptr && take_home(block) ? placed::yes : place_block(block, tier::host, why);
  if (outcome == placed::no) {
    spill_to_storage(block, from, priority);
    return;
  }
  if (outcome == placed::pending) {
    b.spill_waits = true;
    waiting_spills_.push_back(block);
    return;
  }
  block_move m;
  m.block = block;
  m.priority = priority;
  m.drop_source = true;
  m.way = route::device_to_host;
  m.host = address(tier::host, b.host.place);
  b.host.now = replica::state::arriving;
  launch(m);
}

bool scheduler::take_home(std::uint32_t block) {
  const replica& r = blocks_[block].host;
  return r.has_memory() || take_hole(block, tier::host);
}

void scheduler::start_write_back(std::uint32_t block, std::uint64_t priority) {
  block_record& b = blocks_[block];
  block_move m;
  m.block = block;
  m.priority = priority;
  m.write_back = true;
  m.way = route::host_to_storage;
  m.host = address(tier::host, b.host.place);
  take_page_for_rewrite(b);
  launch(m);
}

void scheduler::spill_to_storage(std::uint32_t block, tier from, std::uint64_t priority) {
  block_record& b = blocks_[block];
  block_move m;
  m.block = block;
  m.priority = priority;
  m.drop_source = true;
  m.way = from == tier::device ? route::device_to_storage : route::host_to_storage;
  if (from == tier::host) {
    m.host = address(tier::host, b.host.place);
  }
  take_page_for_rewrite(b);
  launch(m);
}

void scheduler::take_page_for_rewrite(block_record& b) {
  if (b.page.valid()) {
    store_->renew(b.page);  // all of it is rewritten: its chunks go where the paths' rates now want them
  } else {
    ensure_page(b);
  }
}

void scheduler::resume_spills() {
  for (const std::uint32_t block : std::exchange(waiting_spills_, {})) {
    block_record& b = blocks_[block];
    const std::uint32_t claimant = b.device.victim_of;
    if (b.moving || (b.host.now == replica::state::placing && !b.device.held() && claimant != no_block)) {
      waiting_spills_.push_back(block);
      continue;
    }
    b.spill_waits = false;
    changed_.notify_all();
    if (claimant == no_block) {
      continue;  // nobody wants its memory any more
    }
    if (b.device.held() || b.in_place) {
      cancel_claim(claimant, tier::device);
    } else if (can_drop_at_once(b, tier::device)) {
      drop_copy(block, tier::device);
    } else if (b.host.now == replica::state::placed) {
      start_spill(block, tier::device, 0);
    } else {
      spill_to_storage(block, tier::device, 0);
    }
  }
}

void scheduler::ensure_page(block_record& b) {
  if (!b.page.valid()) {
    b.page = store_->allocate(b.bytes, b.name);
  }
}

void scheduler::hasten(std::uint32_t block) {
  const auto found = moves_.find(block);
  if (found != moves_.end()) {
    mover_->hasten(found->second, 0);
  }
}

void scheduler::end_move(block_move& m) {
  const std::uint32_t block = m.block;
  block_record& b = blocks_[block];
  b.moving = false;
  changed_table_ = true;
  if (m.failure != nullptr) {
    latch(m.failure);
  }
  if (m.write_back) {
    b.stored = m.failure == nullptr;
  } else if (m.drop_source) {
    end_spill(b, m);
  } else {
    end_fetch(b, m);
  }
  moves_.erase(block);
  drop_if_dead(block);
}

void scheduler::end_fetch(block_record& b, const block_move& m) {
  const bool to_device = m.way == route::host_to_device || m.way == route::storage_to_device;
  replica& to = to_device ? b.device : b.host;
  const bool good = m.failure == nullptr;
  // A failed fetch leaves no contents; whoever holds a lease on it already will see the stream's or the engine's
  // failure.
  to.now = good || to.pins != 0 ? replica::state::present : replica::state::placed;
  if (m.overwritten) {
    if (m.host != nullptr && b.host.has_memory()) {  // the move's own source: memory taken since then is others'
      b.host.now = replica::state::placed;
      drop_copy(m.block, tier::host);
    }
  } else if (m.keeps_host) {
    b.host.now = good ? replica::state::present : replica::state::placed;
  }
}

void scheduler::end_spill(block_record& b, const block_move& m) {
  const bool from_device = m.way != route::host_to_storage;
  replica& from = from_device ? b.device : b.host;
  if (m.failure != nullptr) {  // the source keeps the only copy: nothing is lost
    if (m.way == route::device_to_host) {
      b.host.now = replica::state::placed;
    }
    if (from.victim_of != no_block) {
      cancel_claim(from.victim_of, from_device ? tier::device : tier::host);
    }
    return;
  }
  if (m.way == route::device_to_host) {
    b.host.now = replica::state::present;
  } else {
    b.stored = true;
  }
  if (!from.held()) {
    drop_copy(m.block, from_device ? tier::device : tier::host);
  } else if (from.victim_of != no_block) {
    cancel_claim(from.victim_of, from_device ? tier::device : tier::host);
  }
}

void scheduler::drop_if_dead(std::uint32_t block) {
  block_record& b = blocks_[block];
  if (b.initialised != 0 || b.moving || b.in_place || b.scratch) {
    return;
  }
  b.stored = false;
  b.zero = false;
  for (const tier t : {tier::device, tier::host}) {
    replica& r = copy_of(b, t);
    if (r.now == replica::state::present && !r.held()) {
      drop_copy(block, t);
    }
  }
}

}  // namespace forebay::detail
