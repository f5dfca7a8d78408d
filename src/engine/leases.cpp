// Leases: what a step may touch, and what ends with it.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

// Ends

void scheduler::mark_initialised(std::uint32_t tensor) {
  tensor_record& t = tensors_[tensor];
  if (!t.initialised) {
    t.initialised = true;
    ++blocks_[t.block].initialised;
  }
}

void scheduler::mark_freed(std::uint32_t tensor) {
  tensor_record& t = tensors_[tensor];
  if (t.initialised) {
    t.initialised = false;
    --blocks_[t.block].initialised;
  }
}

stream_point scheduler::end_point(lease_record& l) noexcept {
  if (l.on == nullptr) {
    return 0;
  }
  try {
    return l.on->record();
  } catch (...) {  // a device that is lost: the engine is done for, and its work is over
    latch(std::current_exception());
    return 0;
  }
}

void scheduler::release(std::uint32_t lease) noexcept {
  const std::scoped_lock lock(mutex_);
  lease_record& l = leases_[lease];
  FOREBAY_ASSERT(l.now == lease_record::state::live);
  l.now = lease_record::state::ended;
  --live_leases_;
  l.end = end_point(l);
  for (const block_access& a : l.step->blocks) {
    if (l.on != nullptr) {
      note_use(blocks_[a.block], modifies(a.how), *l.on, l.end);
    }
  }
  for (const access& a : l.step->tensors) {
    if (has(a.how, uses::free)) {
      mark_freed(a.tensor.index);
    }
  }
  if (l.scratch != no_block) {
    blocks_[l.scratch].scratch_live = false;
  }
  ended_leases_.push_back(lease);
  if (l.on == nullptr) {
    if (l.step->position) {
      clock_.ended(*l.step->position, l.granted, std::chrono::steady_clock::now());
    }
    reap();
    kick_unless_quiet();
  } else if (!quiet_ || measuring_ || timeline_ != nullptr) {
    wake_when_passed(l);
  }
}

// The scheduler has to know when the stream has passed the lease's end. A stream that can't take a callback any more
// has failed; `join` and the stall limit see that.
void scheduler::wake_when_passed(lease_record& l) noexcept {
  if (!callbacks_.enter()) {
    return;
  }
  l.announced = true;
  try {
    l.on->notify([this, on = l.on, step = timeline_ == nullptr ? std::string() : l.step->name, awaited = l.awaited,
                  position = l.step->position, granted = l.granted] {
      passed(step, awaited, position, *on, granted);
      callbacks_.leave();
    });
  } catch (...) {
    callbacks_.leave();
    latch(std::current_exception());
  }
}

// On a thread of the stream's.
void scheduler::passed(const std::string& step, const std::string& awaited, std::optional<std::uint32_t> position,
                       const stream& on, time_point granted) noexcept {
  const time_point now = std::chrono::steady_clock::now();
  const step_clock::spent time = clock_.ended(position, on, granted, now);
  if (timeline_ != nullptr) {
    const time_point start = now - time.computed;
    constexpr duration shown = std::chrono::microseconds(20);
    if (!awaited.empty() && time.waited > shown) {
      timeline_->record_in_order(
          {stall_lane_, fmt::format("{} waits for {}", step, awaited), start - time.waited, start, 0});
    }
    timeline_->record_in_order({compute_lane_, step, start, now, 0});
  }
  kick_unless_quiet();
}

void scheduler::reap() {
  bool any = false;
  for (std::size_t i = 0; i < ended_leases_.size();) {
    lease_record& l = leases_[ended_leases_[i]];
    if (l.on != nullptr && !l.on->passed(l.end)) {
      ++i;
      continue;
    }
    if (l.on != nullptr) {
      if (const std::exception_ptr failed = l.on->failure()) {
        latch(failed);  // the stream skipped work from there on: what it should have written is not there
      }
    }
    unpin(l);
    l.now = lease_record::state::free;
    free_leases_.push_back(ended_leases_[i]);
    ended_leases_.erase(ended_leases_.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  if (any) {
    changed_table_ = true;
    changed_.notify_all();
  }
}

void scheduler::unpin(lease_record& l) {
  const tier t = l.step->where == place::device ? tier::device : tier::host;
  note_passed(*l.step);
  for (const block_access& a : l.step->blocks) {
    block_record& b = blocks_[a.block];
    --copy_of(b, t).pins;
    if (modifies(a.how)) {
      --b.writers;
    }
    // What has passed orders nobody any more, and the stream may be gone by the next use.
    if (b.last_write.on == l.on && b.last_write.point <= l.end) {
      b.last_write = {};
    }
    std::erase_if(b.last_reads, [&](const stream_use& use) { return use.on == l.on && use.point <= l.end; });
    drop_if_dead(a.block);
  }
  if (l.scratch != no_block) {
    --copy_of(blocks_[l.scratch], t).pins;
  }
}

bool scheduler::has_live_leases() const {
  const std::scoped_lock lock(mutex_);
  return live_leases_ != 0;
}

void scheduler::join() {
  std::unique_lock lock(mutex_);
  reap();
  while (!ended_leases_.empty()) {
    const lease_record& l = leases_[ended_leases_.front()];
    stream* on = l.on;
    const stream_point end = l.end;
    lock.unlock();
    on->synchronize(end);
    lock.lock();
    reap();
  }
  // A lease that was granted while its copies were under way has passed without them when the copy stream has failed.
  if (const std::exception_ptr failed = mover_->h2d_stream().failure()) {
    latch(failed);
  }
}

void scheduler::drop_activations() {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    block_record& b = blocks_[i];
    if (!b.activation || b.initialised == 0) {
      continue;
    }
    for (const std::uint32_t t : b.tensors) {
      mark_freed(t);
    }
    drop_if_dead(i);
  }
  kick_unless_quiet();
}

// What a lease shows

std::span<std::byte> scheduler::lease_bytes(std::uint32_t lease, std::uint32_t generation, tensor_id tensor) const {
  const std::scoped_lock lock(mutex_);
  const lease_record& l = leases_.at(lease);
  FOREBAY_EXPECTS(l.now == lease_record::state::live && l.generation == generation, "the lease has ended");
  const bool covered =
      std::any_of(l.step->tensors.begin(), l.step->tensors.end(), [&](const access& a) { return a.tensor == tensor; });
  const tensor_record& t = tensors_.at(tensor.index);
  if (!covered) {
    throw usage_error(fmt::format("step '{}' does not access tensor '{}'", l.step->name, t.name));
  }
  const block_record& b = blocks_[t.block];
  const bool on_device = l.step->where == place::device;
  const extent place = on_device ? b.device.place : b.host.place;
  return {address(on_device ? tier::device : tier::host, place) + t.offset, t.bytes};
}

std::span<std::byte> scheduler::lease_workspace(std::uint32_t lease, std::uint32_t generation) const {
  const std::scoped_lock lock(mutex_);
  const lease_record& l = leases_.at(lease);
  FOREBAY_EXPECTS(l.now == lease_record::state::live && l.generation == generation, "the lease has ended");
  if (l.scratch == no_block) {
    return {};
  }
  const bool on_device = l.step->where == place::device;
  const block_record& b = blocks_[l.scratch];
  return {address(on_device ? tier::device : tier::host, on_device ? b.device.place : b.host.place), l.step->workspace};
}

std::uint32_t scheduler::lease_generation(std::uint32_t lease) const {
  const std::scoped_lock lock(mutex_);
  return leases_[lease].generation;
}

}  // namespace forebay::detail
