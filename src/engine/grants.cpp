// Grants: whether a step may start now, and what changes when it does.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

void scheduler::check_contents(const step_plan& step) const {
  for (const access& a : step.tensors) {
    const tensor_record& t = tensors_.at(a.tensor.index);
    if (needs_contents(a.how) && !t.initialised) {
      throw usage_error(fmt::format("step '{}' reads tensor '{}', which holds nothing: write, zero or create it first",
                                    step.name, t.name));
    }
  }
}

byte_count scheduler::tier_capacity(place where) const {
  return where == place::device ? device_arena_.capacity()
                                : host_arena_.capacity() - staging_.size() * chunk_ - fixed_host_bytes_;
}

void scheduler::check_fits(const step_plan& step) const {
  const tier t = step.where == place::device ? tier::device : tier::host;
  const auto counts = [&](std::uint32_t block) { return t == tier::device || !blocks_[block].host.fixed; };
  byte_count wanted = align_up(step.workspace, device_arena_.rounded(1));
  for (const block_access& a : step.blocks) {
    wanted += counts(a.block) ? blocks_[a.block].bytes : 0;
  }
  std::vector<std::uint32_t> held;
  byte_count held_bytes = 0;
  for (std::size_t i = 0; live_leases_ != 0 && i < leases_.size(); ++i) {
    const lease_record& l = leases_[i];
    if (l.now != lease_record::state::live || l.thread != std::this_thread::get_id() || l.step->where != step.where) {
      continue;
    }
    if (l.scratch != no_block) {
      held_bytes += blocks_[l.scratch].bytes;
    }
    for (const block_access& a : l.step->blocks) {
      const bool shared = std::any_of(step.blocks.begin(), step.blocks.end(),
                                      [&](const block_access& own) { return own.block == a.block; });
      if (!shared && counts(a.block) && std::find(held.begin(), held.end(), a.block) == held.end()) {
        held.push_back(a.block);
        held_bytes += blocks_[a.block].bytes;
      }
    }
  }
  const byte_count capacity = tier_capacity(step.where);
  if (wanted + held_bytes > capacity) {
    throw capacity_error(
        fmt::format("step '{}' needs {} B ({}) in the {} tier, beside {} B of leases that this thread holds; the "
                    "capacity{} is {} B ({})",
                    step.name, wanted, format_bytes(wanted), to_string(t), held_bytes,
                    t == tier::host ? " without staging" : "", capacity, format_bytes(capacity)));
  }
}

bool scheduler::others_idle(const block_record& b, tier t) const {
  return (t == tier::device ? b.host : b.device).pins == 0;
}

// Only ended leases have a point that a stream could wait for. Until then a conflicting lease of another stream, or of
// another thread's host step, waits.
const lease_record* scheduler::conflict(const step_plan& step, const block_access& a, const stream* on,
                                        std::thread::id thread) const {
  if (live_leases_ == 0) {
    return nullptr;
  }
  for (const lease_record& l : leases_) {
    if (l.now != lease_record::state::live || l.step->where != step.where) {
      continue;
    }
    if (l.on == on && (on != nullptr || l.thread == thread)) {
      continue;  // in stream order, or in the order of the thread's own code
    }
    for (const block_access& held : l.step->blocks) {
      if (held.block == a.block && (modifies(held.how) || modifies(a.how))) {
        return &l;
      }
    }
  }
  return nullptr;
}

void scheduler::check_conflicts(const step_plan& step, const stream* on) const {
  for (const block_access& a : step.blocks) {
    const lease_record* held = conflict(step, a, on, std::this_thread::get_id());
    if (held != nullptr && held->thread == std::this_thread::get_id()) {
      throw usage_error(
          fmt::format("step '{}' conflicts over {} with the lease of step '{}' that this thread holds on "
                      "another stream: end that first",
                      step.name, blocks_[a.block].name, held->step->name));
    }
  }
}

bool scheduler::ready(const step_plan& step, const block_access& a, const stream* on, std::thread::id thread) {
  block_record& b = blocks_[a.block];
  const tier t = step.where == place::device ? tier::device : tier::host;
  replica& r = copy_of(b, t);
  if (b.in_place || conflict(step, a, on, thread) != nullptr) {
    return false;
  }
  bool arriving = false;
  if (brings_contents(b, a)) {
    // A fetch whose copies are all enqueued serves a stream: it waits for them itself.
    const auto found = moves_.find(a.block);
    arriving = on != nullptr && r.now == replica::state::arriving && found != moves_.end() &&
               found->second.enqueued_at != 0 && found->second.failure == nullptr;
    if (!r.valid() && !arriving) {
      return false;
    }
  } else {
    if (b.moving || (r.now == replica::state::absent && !take_hole(a.block, t))) {
      return false;
    }
    if (r.now != replica::state::placed && !r.valid()) {
      return false;
    }
  }
  return !modifies(a.how) || ((!b.moving || arriving) && others_idle(b, t));
}

void scheduler::order_after(block_record& b, bool modifying, stream& on) {
  const auto found = b.device.now == replica::state::arriving ? moves_.find(b.index) : moves_.end();
  if (found != moves_.end()) {
    on.wait(mover_->h2d_stream(), found->second.enqueued_at);
  }
  if (b.last_write.on != nullptr && b.last_write.on != &on) {
    on.wait(*b.last_write.on, b.last_write.point);
  }
  if (modifying) {
    for (const stream_use& use : b.last_reads) {
      if (use.on != &on) {
        on.wait(*use.on, use.point);
      }
    }
  }
}

void scheduler::note_use(block_record& b, bool modifying, const stream& on, stream_point end) {
  if (modifying) {
    b.last_write = {&on, end};
    b.last_reads.clear();
    return;
  }
  for (stream_use& use : b.last_reads) {
    if (use.on == &on) {
      use.point = end;
      return;
    }
  }
  b.last_reads.push_back({&on, end});
}

bool scheduler::used_elsewhere_next(const step_plan& step, std::uint32_t block) const {
  const std::uint32_t distance = next_use_.distance_after(block, *step.position, 0);
  return distance != plan::next_use::never && steps_[(*step.position + distance) % steps_.size()].where != step.where;
}

void scheduler::take_over(const step_plan& step, const block_access& a) {
  block_record& b = blocks_[a.block];
  const tier t = step.where == place::device ? tier::device : tier::host;
  const tier other = t == tier::device ? tier::host : tier::device;
  replica& r = copy_of(b, t);
  ++r.pins;
  if (!brings_contents(b, a)) {
    r.now = replica::state::present;
  }
  if (!modifies(a.how)) {
    return;
  }
  ++b.writers;
  b.stored = false;
  b.zero = false;
  if (quiet_ && step.position && used_elsewhere_next(step, a.block)) {
    quiet_ = false;  // the new contents will have to travel
  }
  replica& stale = copy_of(b, other);
  if (b.moving) {
    moves_.at(a.block).overwritten = true;  // its source memory is in use until the move's end
    if (stale.valid()) {
      stale.now = replica::state::placed;
    }
  } else if (stale.valid()) {
    drop_copy(a.block, other);
  }
}

std::uint32_t scheduler::scratch_for(const step_plan& step, const stream* on) {
  const tier t = step.where == place::device ? tier::device : tier::host;
  const byte_count kept = follow_.active ? follow_.workspace[t == tier::device ? 0 : 1] : 0;
  const byte_count bytes = std::max(kept, device_arena_.rounded(step.workspace));
  std::uint32_t fallback = no_block;
  for (const std::uint32_t i : scratches_) {
    const block_record& b = blocks_[i];
    const replica& r = t == tier::device ? b.device : b.host;
    const bool own = b.scratch_of == on && b.scratch_where == step.where && !b.scratch_live;
    if (own && r.has_memory() && b.bytes >= bytes) {
      return i;
    }
    if (own && (r.now == replica::state::absent || (r.now == replica::state::placed && r.pins == 0))) {
      fallback = i;
    } else if (own && r.now == replica::state::placing && b.bytes >= bytes) {
      return i;
    }
  }
  if (fallback != no_block) {
    if (copy_of(blocks_[fallback], t).has_memory()) {
      drop_copy(fallback, t);
    }
    blocks_[fallback].bytes = bytes;
    return fallback;
  }
  block_record b;
  b.name = "workspace";
  b.bytes = bytes;
  b.scratch = true;
  b.scratch_of = on;
  b.scratch_where = step.where;
  scratches_.push_back(add_block(std::move(b)));
  return scratches_.back();
}

std::uint32_t scheduler::new_lease(const step_plan& step, stream* on, std::thread::id thread) {
  if (free_leases_.empty()) {
    leases_.emplace_back();
    free_leases_.push_back(static_cast<std::uint32_t>(leases_.size() - 1));
  }
  const std::uint32_t index = free_leases_.back();
  free_leases_.pop_back();
  lease_record& l = leases_[index];
  l.now = lease_record::state::live;
  ++live_leases_;
  ++l.generation;
  l.step = &step;
  l.on = on;
  l.thread = thread;
  l.scratch = no_block;
  l.announced = false;
  l.awaited.clear();
  l.granted = std::chrono::steady_clock::now();
  return index;
}

// The copies that its stream waits for before the lease's work: the last one that was enqueued.
void scheduler::note_awaited(lease_record& l) const {
  stream_point latest = 0;
  for (const block_access& a : l.step->blocks) {
    const auto move = moves_.find(a.block);
    if (move != moves_.end() && move->second.enqueued_at > latest) {
      latest = move->second.enqueued_at;
      l.awaited = missing_block(*l.step, blocks_[a.block]);
    }
  }
}

std::optional<std::uint32_t> scheduler::try_grant(const step_plan& step, stream* on, std::thread::id thread) {
  const tier t = step.where == place::device ? tier::device : tier::host;
  for (const block_access& a : step.blocks) {
    if (!ready(step, a, on, thread)) {
      return std::nullopt;
    }
  }
  std::uint32_t scratch = no_block;
  if (step.workspace != 0) {
    scratch = scratch_for(step, on);
    const replica& r = copy_of(blocks_[scratch], t);
    if (r.now == replica::state::placing || (r.now == replica::state::absent && !take_hole(scratch, t))) {
      return std::nullopt;
    }
  }
  if (on != nullptr) {
    for (const block_access& a : step.blocks) {
      order_after(blocks_[a.block], modifies(a.how), *on);
    }
  }
  for (const block_access& a : step.blocks) {
    take_over(step, a);
  }
  for (const access& a : step.tensors) {
    if (has(a.how, uses::create)) {
      mark_initialised(a.tensor.index);
    }
  }
  const std::uint32_t lease = new_lease(step, on, thread);
  if (timeline_ != nullptr && on != nullptr) {
    note_awaited(leases_[lease]);
  }
  if (scratch != no_block) {
    leases_[lease].scratch = scratch;
    blocks_[scratch].scratch_live = true;
    ++copy_of(blocks_[scratch], t).pins;
  }
  return lease;
}

}  // namespace forebay::detail
