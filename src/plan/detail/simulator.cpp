// The clock, the thread that acquires, and the two engines.
#include "plan/detail/simulator.hpp"

#include <algorithm>

#include <forebay/plan/packing.hpp>

namespace forebay::plan::detail {

simulator::simulator(const trace& t, const machine& m, const simulation_options& options)
    : trace_(t),
      options_(options),
      two_tiers_(m.storage.empty()),
      next_use_(t),
      links_(m),
      bytes_(t.item_bytes),
      items_(t.item_bytes.size() + 2),
      capacity_{m.device_capacity, m.host_capacity},
      free_{m.device_capacity, m.host_capacity},
      stamp_(t.item_bytes.size(), 0) {
  bytes_.resize(items_.size(), 0);
  for (item_index i = 0; i < items_.size(); ++i) {
    next_use_at_.push_back(next_use_of(i));
  }
  std::vector<bool> seen(t.item_bytes.size(), false);
  for (const trace_step& step : t.steps) {
    for (const item_access& a : step.accesses) {
      if (!seen[a.item] && needs_contents(a.how)) {  // it lives from before the first iteration
        items_[a.item].defined = true;
        items_[a.item].stored = !two_tiers_;
        items_[a.item].copies[host].now = two_tiers_ ? state::present : state::absent;
      }
      seen[a.item] = true;
    }
  }
}

std::vector<simulation> simulator::run() {
  while (results_.size() < options_.iterations) {
    while (changed_) {
      changed_ = false;
      changed_ = pump() || changed_;
    }
    if (results_.size() == options_.iterations) {
      break;
    }
    if (events_.empty()) {
      return std::vector<simulation>(options_.iterations);  // nothing can move any more
    }
    now_ = events_.top().time;
    while (!events_.empty() && events_.top().time == now_) {
      const event e = events_.top();
      events_.pop();
      handle(e);
    }
    changed_ = true;
  }
  return results_;
}

bool simulator::pump() {
  bool progress = advance_caller();
  progress = start_device_step() || progress;
  if (options_.prefetch) {
    prefetch();
  }
  links_.start(now_, bytes_, [&](double end, const simulated_move& move) {
    const byte_count bytes = bytes_[move.item];
    switch (move.stages[move.stage]) {
      case link::h2d:
        current_.moved.h2d += bytes;
        break;
      case link::d2h:
        current_.moved.d2h += bytes;
        break;
      case link::storage_read:
        current_.moved.storage_read += bytes;
        break;
      case link::storage_write:
        current_.moved.storage_written += bytes;
        break;
    }
    events_.push({end, sequence_++, false, 0, move});
  });
  return progress;
}

void simulator::handle(const event& e) {
  if (e.is_step) {
    end_step(e.step);
    return;
  }
  links_.finished(e.move.stages[e.move.stage]);
  if (e.move.stage + 1 < e.move.stage_count) {
    simulated_move next = e.move;
    ++next.stage;
    links_.enqueue(next);
  } else {
    end_move(e.move);
  }
}

bool simulator::joins(std::uint32_t step) const {
  const std::string& phase = trace_.steps[step].phase;
  const bool starts = step == 0 || trace_.steps[step - 1].phase != phase;
  const auto& joining = options_.joining_phases;
  return (step == 0 && options_.iterations_join) ||
         (starts && std::find(joining.begin(), joining.end(), phase) != joining.end());
}

/// Gives the thread what it asks for, as far as possible. True when it got on.
bool simulator::advance_caller() {
  bool progress = false;
  // Without joins it could run ahead for ever where nothing takes memory: one iteration is far enough.
  while (!host_busy_ && iteration_ < options_.iterations && iteration_ <= results_.size() + 1) {
    const trace_step& step = trace_.steps[cursor_];
    if (joins(cursor_) && !idle()) {
      return progress;
    }
    if (!asked_) {
      ask(step);
    }
    if (must_wait_for_steps(step)) {
      turn_ = now_;
    }
    serve(step);
    if (!can_grant(step)) {
      return progress;
    }
    grant(cursor_);
    progress = true;
  }
  return progress;
}

void simulator::ask(const trace_step& step) {
  asked_ = true;
  turn_ = now_;
  set_wanted(step, true);
  for (const item_access& a : step.accesses) {
    const item& i = items_[a.item];
    if (needs_contents(a.how) && i.defined && !i.copies[tier_of(step)].coming()) {
      ++current_.misses;
      break;
    }
  }
}

void simulator::set_wanted(const trace_step& step, bool wanted) {
  for (const item_access& a : step.accesses) {
    items_[a.item].copies[tier_of(step)].wanted = wanted;
    touch(a.item);
  }
  items_[scratch(tier_of(step))].copies[tier_of(step)].wanted = wanted && step.workspace > 0;
}

/// Steps that were given their items earlier and still run or queue stand in this one's way.
bool simulator::must_wait_for_steps(const trace_step& step) const {
  return std::any_of(step.accesses.begin(), step.accesses.end(), [&](const item_access& a) {
    const item& i = items_[a.item];
    const bool pinned = i.copies[device].pins + i.copies[host].pins > 0;
    const bool other_tier = i.copies[1 - tier_of(step)].pins > 0;
    return (i.writers > 0 && step.where == place::host) ||
           (other_tier && (modifies(a.how) || has(a.how, uses::free))) ||
           (pinned && !needs_contents(a.how) && i.defined);
  });
}

bool simulator::can_grant(const trace_step& step) const {
  const std::size_t tier = tier_of(step);
  if (must_wait_for_steps(step)) {
    return false;
  }
  const bool items_there = std::all_of(step.accesses.begin(), step.accesses.end(), [&](const item_access& a) {
    const item& i = items_[a.item];
    const copy& c = i.copies[tier];
    if (!needs_contents(a.how)) {
      return c.has_memory() && !i.moving;
    }
    // Work may be enqueued behind an arriving copy, on the device; a thread has to wait. A copy that a transfer still
    // reads or makes elsewhere must not become stale before it has ended.
    return (step.where == place::device ? c.coming() : c.now == state::present) && (!i.moving || !modifies(a.how));
  });
  return items_there && (step.workspace == 0 || (items_[scratch(tier)].copies[tier].has_memory() &&
                                                 bytes_[scratch(tier)] >= align_up(step.workspace, block_alignment)));
}

void simulator::grant(std::uint32_t s) {
  const trace_step& step = trace_.steps[s];
  const std::size_t tier = tier_of(step);
  set_wanted(step, false);
  for (const item_access& a : step.accesses) {
    item& i = items_[a.item];
    copy& here = i.copies[tier];
    ++here.pins;
    if (!needs_contents(a.how)) {
      here.now = state::present;
      i.defined = true;
    }
    if (modifies(a.how)) {
      ++i.writers;
      i.stored = false;
      if (i.copies[1 - tier].now == state::present) {
        drop(a.item, 1 - tier);
      }
    }
    touch(a.item);
  }
  items_[scratch(tier)].copies[tier].pins += step.workspace > 0 ? 1 : 0;
  asked_ = false;
  ++granted_;
  cursor_ = (cursor_ + 1) % static_cast<std::uint32_t>(trace_.steps.size());
  iteration_ += cursor_ == 0 ? 1 : 0;
  for (const item_access& a : step.accesses) {
    note_next_use(a.item);
  }
  if (step.where == place::device) {
    queue_.push_back({s, turn_});
  } else {
    host_busy_ = true;
    current_.stall_seconds += now_ - turn_;
    begin_step(s);
  }
}

bool simulator::start_device_step() {
  if (device_busy_ || queue_.empty()) {
    return false;
  }
  const auto [s, asked] = queue_.front();
  for (const item_access& a : trace_.steps[s].accesses) {
    if (items_[a.item].copies[device].now != state::present) {
      links_.hasten(a.item);
      return false;
    }
  }
  queue_.pop_front();
  device_busy_ = true;
  current_.stall_seconds += now_ - std::max(device_free_, asked);
  begin_step(s);
  return true;
}

void simulator::begin_step(std::uint32_t s) {
  ++running_;
  events_.push({now_ + trace_.steps[s].seconds, sequence_++, true, s, {}});
}

void simulator::end_step(std::uint32_t s) {
  const trace_step& step = trace_.steps[s];
  const std::size_t tier = tier_of(step);
  --running_;
  if (step.where == place::device) {
    device_busy_ = false;
    device_free_ = now_;
  } else {
    host_busy_ = false;
  }
  for (const item_access& a : step.accesses) {
    item& i = items_[a.item];
    --i.copies[tier].pins;
    i.writers -= modifies(a.how) ? 1U : 0U;
    touch(a.item);
    if (has(a.how, uses::free)) {
      i.defined = false;
      drop_if_dead(a.item);
    }
  }
  items_[scratch(tier)].copies[tier].pins -= step.workspace > 0 ? 1 : 0;
  ++ended_;
  if (ended_ % trace_.steps.size() == 0) {
    end_iteration();
  }
}

void simulator::end_iteration() {
  current_.complete = true;
  current_.seconds = now_ - iteration_start_;
  iteration_start_ = now_;
  results_.push_back(current_);
  current_ = {};
}

/// Makes room and starts fetches for the step that waits.
void simulator::serve(const trace_step& step) {
  const std::size_t tier = tier_of(step);
  for (const item_access& a : step.accesses) {
    item& i = items_[a.item];
    copy& here = i.copies[tier];
    if (here.coming()) {
      if (here.now == state::arriving) {
        links_.hasten(a.item);
      }
      continue;
    }
    if (i.moving) {
      links_.hasten(a.item);
      continue;
    }
    if (place_item(a.item, tier, why::request, 0) != placed::yes || !needs_contents(a.how) || i.writers > 0) {
      continue;
    }
    fetch(a.item, tier, 0, false);
  }
  serve_scratch(step, tier);
}

void simulator::serve_scratch(const trace_step& step, std::size_t tier) {
  const byte_count needed = align_up(step.workspace, block_alignment);
  const item_index s = scratch(tier);
  copy& c = items_[s].copies[tier];
  if (needed == 0 || c.now == state::placing) {
    return;
  }
  if (c.has_memory() && bytes_[s] < needed && c.pins == 0 && c.victim_of == nobody) {
    drop(s, tier);
  }
  if (!c.has_memory()) {
    bytes_[s] = needed;
    place_item(s, tier, why::request, 0);
  }
}

}  // namespace forebay::plan::detail
