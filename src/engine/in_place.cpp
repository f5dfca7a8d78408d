// Exclusive access to a block outside of steps, wherever it lives.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

in_place_access scheduler::begin_in_place(std::uint32_t block, bool writes) {
  std::unique_lock lock(mutex_);
  block_record& b = blocks_[block];
  for (;;) {
    throw_if_failed();
    for (const lease_record& l : leases_) {
      const bool holds =
          l.now == lease_record::state::live && std::any_of(l.step->blocks.begin(), l.step->blocks.end(),
                                                            [&](const block_access& a) { return a.block == block; });
      if (holds) {
        throw usage_error(fmt::format("{} is leased by step '{}': end the lease first", b.name, l.step->name));
      }
    }
    reap();
    if (!b.moving && !b.in_place && !b.spill_waits && b.device.pins == 0 && b.host.pins == 0) {
      break;
    }
    if (!ended_leases_.empty()) {
      const lease_record& l = leases_[ended_leases_.front()];
      stream* on = l.on;
      const stream_point end = l.end;
      lock.unlock();
      on->synchronize(end);
      lock.lock();
      continue;
    }
    changed_.wait(lock);
  }
  b.in_place = true;
  try {
    return open_in_place(block, writes, lock);
  } catch (...) {
    b.in_place = false;
    changed_.notify_all();
    kick();
    throw;
  }
}

in_place_access scheduler::open_in_place(std::uint32_t block, bool writes, std::unique_lock<std::mutex>& lock) {
  block_record& b = blocks_[block];
  in_place_access access;
  if (b.host.valid()) {
    access.where = in_place_access::source::host;
  } else if (b.device.valid()) {
    access.where = in_place_access::source::device;
  } else if (b.stored) {
    access.where = in_place_access::source::storage;
  } else {
    access.where = b.zero ? in_place_access::source::zero : in_place_access::source::nothing;
  }
  if (writes && access.where == in_place_access::source::host && b.device.valid()) {
    const byte_count offset = b.device.place.offset;
    drop_copy(block, tier::device);
    if (follow_.active) {
      bring_again(block, tier::device, offset);
    }
  }
  const bool blank = access.where == in_place_access::source::zero || access.where == in_place_access::source::nothing;
  if (writes && blank) {
    const bool in_host = b.host.has_memory() || (b.host.now == replica::state::absent && take_hole(block, tier::host));
    if (in_host) {
      std::memset(address(tier::host, b.host.place), 0, b.bytes);
      access.where = in_place_access::source::host;
    }
  }
  if (access.where == in_place_access::source::host) {
    access.memory = address(tier::host, b.host.place);
  } else if (access.where == in_place_access::source::device) {
    access.memory = address(tier::device, b.device.place);
  } else if (store_ != nullptr && (writes || access.where == in_place_access::source::storage)) {
    ensure_page(b);
    access.page = b.page;
    changed_.wait(lock, [&] { return (access.staging = staging_.take()) != nullptr; });
  }
  return access;
}

void scheduler::end_in_place(std::uint32_t block, const in_place_access& access, bool wrote) {
  const std::scoped_lock lock(mutex_);
  block_record& b = blocks_[block];
  b.in_place = false;
  if (access.staging != nullptr) {
    staging_.give_back(access.staging);
  }
  if (wrote) {
    b.zero = false;
    b.stored = access.staging != nullptr;
    if (access.where == in_place_access::source::host) {
      b.host.now = replica::state::present;
    }
  }
  quiet_ = false;
  changed_.notify_all();
  kick();
}

bool scheduler::zero_block(std::uint32_t block, std::uint32_t tensor) {
  const std::scoped_lock lock(mutex_);
  block_record& b = blocks_[block];
  if (b.moving || b.in_place || b.has_valid_copy() || b.device.pins != 0 || b.host.pins != 0) {
    return false;
  }
  b.zero = true;
  mark_initialised(tensor);
  quiet_ = false;
  kick();
  return true;
}

}  // namespace forebay::detail
