// Acquires that have to wait, and what is done for them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

std::uint32_t scheduler::acquire(const step_plan& step, stream* on) {
  std::unique_lock lock(mutex_);
  throw_if_failed();
  reap();
  check_contents(step);
  check_fits(step);
  check_conflicts(step, on);
  if (follow_.active && !is_expected(step)) {
    stop_following();
  }
  const bool missed = !follow_.active && is_miss(step);
  if (step.position) {
    move_cursor(*step.position + 1);
  }
  misses_ += missed ? 1 : 0;
  if (may_grant(step) && !must_queue(step)) {
    if (const auto lease = try_grant(step, on, std::this_thread::get_id())) {
      note_granted(step);
      kick_unless_quiet();
      return *lease;
    }
  }
  return wait_for(step, on, lock);
}

// A thread that holds nothing does not overtake another thread's request that finds no memory: taking the same blocks
// over and over it would keep them in place for ever.
bool scheduler::must_queue(const step_plan& step) const {
  const std::thread::id self = std::this_thread::get_id();
  const bool starving = std::any_of(requests_.begin(), requests_.end(), [&](const request* r) {
    return r->unplaced && !r->done() && r->thread != self && r->step->where == step.where;
  });
  return starving && !holds_leases(self);
}

bool scheduler::is_miss(const step_plan& step) {
  return std::any_of(step.blocks.begin(), step.blocks.end(), [&](const block_access& a) {
    const block_record& b = blocks_[a.block];
    const replica& r = step.where == place::device ? b.device : b.host;
    // Contents that a stream still computes, or whose memory is being cleared, could not have come sooner.
    return brings_contents(b, a) && r.now == replica::state::absent && b.writers == 0;
  });
}

std::uint32_t scheduler::wait_for(const step_plan& step, stream* on, std::unique_lock<std::mutex>& lock) {
  request r;
  r.step = &step;
  r.on = on;
  r.thread = std::this_thread::get_id();
  want(r, !follow_.active);
  requests_.push_back(&r);
  quiet_ = false;
  for (const std::uint32_t ended : ended_leases_) {
    if (!leases_[ended].announced) {
      wake_when_passed(leases_[ended]);
    }
  }
  kick();
  const time_point start = std::chrono::steady_clock::now();
  const bool in_time = changed_.wait_for(lock, stall_limit_, [&] { return r.done(); });
  const time_point end = std::chrono::steady_clock::now();
  requests_.erase(std::find(requests_.begin(), requests_.end(), &r));
  want(r, false);
  kick();
  // Waiting behind a stream that still computes costs nothing: the stall begins when the stream has run dry.
  const time_point dry = on == nullptr ? start : std::max(start, std::min(end, on->idle_since()));
  stall_ += end - dry;
  if (timeline_ != nullptr && end > dry) {
    const std::string what = r.awaited.empty() ? "its turn" : r.awaited;
    timeline_->record_in_order({stall_lane_, fmt::format("{} waits for {}", step.name, what), dry, end, 0});
  }
  if (r.failure != nullptr) {
    std::rethrow_exception(r.failure);
  }
  if (!in_time) {
    throw error(
        fmt::format("step '{}' could not be served within {} ms; {}", step.name, stall_limit_.count(), picture()));
  }
  return *r.lease;
}

void scheduler::want(request& r, bool wanted) {
  if (std::exchange(r.wants, wanted) == wanted) {
    return;
  }
  const tier t = r.step->where == place::device ? tier::device : tier::host;
  for (const block_access& a : r.step->blocks) {
    replica& c = copy_of(blocks_[a.block], t);
    c.wanted = wanted ? c.wanted + 1 : c.wanted - 1;
  }
  if (!wanted && r.scratch != no_block) {
    --copy_of(blocks_[std::exchange(r.scratch, no_block)], t).wanted;
  }
}

void scheduler::serve_requests() {
  for (request* r : requests_) {
    r->unplaced = false;
    if (r->done()) {
      continue;
    }
    if (failure_ != nullptr) {
      r->failure = failure_;
    } else if (follow_.active) {
      serve_by_schedule(*r);
    } else if (const request* first = ahead_of(*r)) {
      serve_behind(*r, *first);
    } else {
      serve(*r);
    }
    if (timeline_ != nullptr && !r->done()) {
      r->awaited = missing_for(*r);
    }
    if (r->done()) {
      changed_table_ = true;
      changed_.notify_all();
    }
  }
}

// The request that this one must let pass: the first, while everything is cleared away for it; or an older one in the
// same tier that finds no memory, unless this one's thread holds leases that the older one may be waiting for.
const request* scheduler::ahead_of(const request& r) const {
  const request* front = requests_.front();
  if (front != &r && front->regrouped && !front->done()) {
    return front;
  }
  for (const request* older : requests_) {
    if (older == &r) {
      return nullptr;
    }
    if (older->unplaced && !older->done() && older->step->where == r.step->where && !holds_leases(r.thread)) {
      return older;
    }
  }
  return nullptr;
}

bool scheduler::holds_leases(std::thread::id thread) const {
  return live_leases_ != 0 && std::any_of(leases_.begin(), leases_.end(), [&](const lease_record& l) {
           return l.now == lease_record::state::live && l.thread == thread;
         });
}

// The schedule brings what the request waits for.
void scheduler::serve_by_schedule(request& r) {
  if (!may_grant(*r.step)) {
    return;
  }
  try {
    r.lease = try_grant(*r.step, r.on, r.thread);
  } catch (...) {
    r.failure = std::current_exception();
  }
  if (r.lease) {
    note_granted(*r.step);
  }
}

// Others only take what is there.
void scheduler::serve_behind(request& r, const request& first) {
  want(r, false);
  r.unplaced = true;
  if (r.step->where == first.step->where) {
    return;
  }
  try {
    r.lease = try_grant(*r.step, r.on, r.thread);
  } catch (...) {
    r.failure = std::current_exception();
  }
}

void scheduler::serve(request& r) {
  if (r.closing_gaps && !moves_.empty()) {
    r.unplaced = true;  // nothing is placed before everything has left
    return;
  }
  r.closing_gaps = false;
  want(r, true);
  try {
    r.lease = try_grant(*r.step, r.on, r.thread);
    if (r.lease) {
      return;
    }
    for (const block_access& a : r.step->blocks) {
      serve_block(r, a);
    }
    serve_workspace(r);
    r.lease = try_grant(*r.step, r.on, r.thread);
  } catch (...) {
    r.failure = std::current_exception();
  }
}

void scheduler::serve_block(request& r, const block_access& a) {
  block_record& b = blocks_[a.block];
  const tier t = r.step->where == place::device ? tier::device : tier::host;
  replica& to = copy_of(b, t);
  const bool contents = brings_contents(b, a);
  if (to.valid() || to.now == replica::state::arriving || (!contents && to.now == replica::state::placed)) {
    hasten(a.block);
    return;
  }
  if (b.in_place) {
    return;
  }
  // A block on its way to another tier has its room kept here meanwhile: the look-ahead would take it.
  placed outcome = place_block(a.block, t, {need::kind::request, 0});
  if (outcome == placed::no) {
    cancel_unwanted_claims(t);
    outcome = place_block(a.block, t, {need::kind::request, 0});
  }
  r.unplaced = r.unplaced || outcome == placed::no;
  if (b.moving) {
    hasten(a.block);
    return;
  }
  // The other tier's copy is complete only when the stream that writes it has passed.
  if (outcome == placed::yes && contents && b.writers == 0) {
    start_fetch(a.block, t, 0, false);
  }
}

void scheduler::serve_workspace(request& r) {
  if (r.step->workspace == 0) {
    return;
  }
  const tier t = r.step->where == place::device ? tier::device : tier::host;
  const std::uint32_t scratch = scratch_for(*r.step, r.on);
  if (r.scratch != scratch) {
    if (r.scratch != no_block) {
      --copy_of(blocks_[r.scratch], t).wanted;
    }
    r.scratch = scratch;
    ++copy_of(blocks_[scratch], t).wanted;  // until the grant: others' requests may not have it
  }
  if (place_block(scratch, t, {need::kind::request, 0}) == placed::no) {
    cancel_unwanted_claims(t);
    r.unplaced = place_block(scratch, t, {need::kind::request, 0}) == placed::no || r.unplaced;
  }
}

// When nothing is on its way and the request still has no room, gaps between the blocks that lie around are all that is
// left. Moving everything unheld out and the request's blocks in again, one behind the other, closes them; if that does
// not help, the request does not fit beside the leases that live.
void scheduler::fail_if_stuck() {
  if (requests_.empty() || !moves_.empty() || !ended_leases_.empty()) {
    return;
  }
  for (const block_record& b : blocks_) {
    if (b.in_place) {
      return;
    }
  }
  for (const lease_record& l : leases_) {
    const bool waiting = std::any_of(requests_.begin(), requests_.end(),
                                     [&](const request* r) { return r->thread == l.thread && !r->done(); });
    if (l.now == lease_record::state::live && !waiting) {
      return;  // its thread runs, and may release it
    }
  }
  request& r = *requests_.front();
  if (r.done()) {
    return;
  }
  if (follow_.active) {  // something is not as the schedule has it
    follow_.strict = true;
    stop_following();
    return;
  }
  if (!r.regrouped) {
    regroup(r);
    return;
  }
  r.failure = std::make_exception_ptr(capacity_error(
      fmt::format("step '{}' can't be served in the {} tier beside the leases that live; {}", r.step->name,
                  to_string(r.step->where == place::device ? tier::device : tier::host), picture())));
  changed_table_ = true;
  changed_.notify_all();
}

void scheduler::regroup(request& r) {
  r.regrouped = true;
  r.closing_gaps = true;
  changed_table_ = true;
  const tier t = r.step->where == place::device ? tier::device : tier::host;
  for (request* each : requests_) {
    want(*each, false);
  }
  cancel_unwanted_claims(t);
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const replica& c = copy_of(blocks_[i], t);
    const bool can_go = c.valid() || c.now == replica::state::placed;
    if (can_go && !c.fixed && !c.held() && !blocks_[i].moving) {
      evict_now(i, t);
    }
  }
}

// The first of its blocks that is not ready, and what that waits for itself.
std::string scheduler::missing_for(const request& r) {
  for (const block_access& a : r.step->blocks) {
    if (const lease_record* held = conflict(*r.step, a, r.on, r.thread)) {
      return fmt::format("step {}", held->step->name);
    }
    if (!ready(*r.step, a, r.on, r.thread)) {
      return missing_block(*r.step, blocks_[a.block]);
    }
  }
  return follow_.active && !may_grant(*r.step) ? "earlier operations of the schedule" : std::string();
}

std::string scheduler::missing_block(const step_plan& step, const block_record& b) const {
  const replica& c = step.where == place::device ? b.device : b.host;
  if (const auto move = moves_.find(b.index); move != moves_.end()) {
    return fmt::format("{} of {}", to_string(move->second.way), b.name);
  }
  if (b.writers != 0) {
    return fmt::format("the step that computes {}", b.name);
  }
  return fmt::format("{} {}", c.has_memory() ? "the start of a move of" : "memory for", b.name);
}

std::string scheduler::picture() const {
  const auto describe = [&](const tier_arena& arena, std::string_view name) {
    return fmt::format("{} tier: {} of {} B free, largest hole {} B", name, arena.free_bytes(), arena.capacity(),
                       arena.largest_hole());
  };
  std::string text = fmt::format("{}; {}; {} moves under way, {} ended leases waiting for their streams",
                                 describe(device_arena_, "device"), describe(host_arena_, "host"), moves_.size(),
                                 ended_leases_.size());
  for (const lease_record& l : leases_) {
    if (l.now == lease_record::state::live) {
      text += fmt::format("; live lease of step '{}'", l.step->name);
    }
  }
  for (const request* r : requests_) {
    text += fmt::format("; step '{}' waits for", r->step->name);
    for (const block_access& a : r->step->blocks) {
      const block_record& b = blocks_[a.block];
      const replica& c = r->step->where == place::device ? b.device : b.host;
      if (!c.valid()) {
        text += fmt::format(" {} ({})", b.name, b.moving ? "moving" : (c.has_memory() ? "placed" : "no memory"));
      }
    }
  }
  return text;
}

}  // namespace forebay::detail
