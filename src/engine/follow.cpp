// The planner's schedule, carried out: operations take their turns in its order, memory is granted in its order, and
// whatever has its memory and its inputs starts. That cannot deadlock (every operation waits for earlier ones only), as
// long as callers do what the order says. When they don't, or contents are not where the schedule has them, following
// ends and blocks are brought on demand and by look-ahead until the next iteration starts.
#include <algorithm>
#include <utility>

#include <forebay/base/contract.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {
namespace {

constexpr std::size_t longest_window = 512;

constexpr std::size_t index_of(tier t) { return t == tier::device ? 0 : 1; }
constexpr tier tier_of(place where) { return where == place::device ? tier::device : tier::host; }

planned_entry entry_of(const placed_schedule& plan, std::uint32_t operation) {
  const plan::operation& o = plan.steady.operations[operation];
  planned_entry e;
  e.index = o.index;
  e.operation = operation;
  if (o.what == plan::operation::kind::drop) {
    e.what = planned_entry::kind::leave;
    e.where = o.gone == plan::copies::device ? tier::device : tier::host;
  } else if (o.what == plan::operation::kind::transfer) {
    const plan::copies target = plan::target_of(o.over);
    e.what = target == plan::copies::storage ? planned_entry::kind::write_back : planned_entry::kind::bring;
    e.where = target == plan::copies::device ? tier::device : tier::host;
    for (std::uint32_t p = plan.first_place[operation]; p < plan.first_place[operation + 1]; ++p) {
      e.offset = plan.places[p].offset;
    }
  }
  return e;
}

}  // namespace

void scheduler::set_schedule(std::shared_ptr<const placed_schedule> plan, byte_count device_workspace,
                             byte_count host_workspace) {
  stop_following();
  follow_.plan = std::move(plan);
  follow_.strict = follow_.strict && follow_.plan != nullptr;
  follow_.largest = {};
  for (std::size_t i = 0; follow_.plan != nullptr && i < follow_.plan->places.size(); ++i) {
    const planned_place& p = follow_.plan->places[i];
    follow_.largest[index_of(p.where)] = std::max(follow_.largest[index_of(p.where)], blocks_[p.block].bytes);
  }
  follow_.workspace = {device_workspace, store_ == nullptr ? 0 : host_workspace};
}

bool scheduler::following_whole_iterations() const { return follow_.active && follow_.expected == 0; }

void scheduler::start_following() {
  std::unique_lock lock(mutex_);
  if (follow_.plan == nullptr || following_whole_iterations() || failure_ != nullptr || !requests_.empty()) {
    return;
  }
  stop_following();
  // The copies must lie still while it is decided which of them have to go.
  pausing_ = true;
  for (const tier t : {tier::device, tier::host}) {
    cancel_unwanted_claims(t);
  }
  quiet_ = false;
  kick();
  const bool still = changed_.wait_for(
      lock, stall_limit_, [&] { return failure_ != nullptr || (moves_.empty() && waiting_spills_.empty()); });
  pausing_ = false;
  if (!still || failure_ != nullptr) {
    return;
  }
  reap();
  follow_.active = true;
  follow_.next = 0;
  follow_.expected = 0;
  follow_.entry_of_step.assign(steps_.size(), nullptr);
  for (const std::uint32_t i : scratches_) {
    for (const tier t : {tier::device, tier::host}) {
      const replica& r = copy_of(blocks_[i], t);
      if (r.now == replica::state::placed && !r.held()) {
        drop_copy(i, t);
      }
    }
  }
  prepare_start();
  kick();
}

// From the copies as they are to those that the schedule starts with: what is not wanted, or lies elsewhere, leaves;
// then what is missing comes.
void scheduler::prepare_start() {
  constexpr byte_count nowhere = ~byte_count{0};
  std::array<std::vector<byte_count>, 2> wanted;
  wanted.fill(std::vector<byte_count>(blocks_.size(), nowhere));
  for (const planned_place& p : follow_.plan->at_start) {
    wanted[index_of(p.where)][p.block] = p.offset;
  }
  const auto push = [&](planned_entry::kind what, std::uint32_t block, tier t, byte_count offset) {
    planned_entry e;
    e.what = what;
    e.index = block;
    e.where = t;
    e.offset = offset;
    e.turn = ++follow_.turn;
    follow_.window.push_back(e);
  };
  for (const tier t : {tier::device, tier::host}) {
    for (const block_record& b : blocks_) {
      const replica& r = t == tier::device ? b.device : b.host;
      const byte_count place = wanted[index_of(t)][b.index];
      const bool stays = place != nowhere && r.valid() && lies_well(t, r, place);
      if (!b.scratch && !r.fixed && r.has_memory() && !stays) {
        push(planned_entry::kind::leave, b.index, t, 0);
      }
    }
  }
  for (const tier t : {tier::host, tier::device}) {
    for (const planned_place& p : follow_.plan->at_start) {
      const replica& r = copy_of(blocks_[p.block], t);
      if (p.where == t && !(r.valid() && lies_well(t, r, p.offset))) {
        push(planned_entry::kind::bring, p.block, t, p.offset);
      }
    }
  }
}

// Where the plan keeps it, or at least out of the way of workspaces.
bool scheduler::lies_well(tier t, const replica& r, byte_count planned) {
  return follow_.strict ? r.place.offset == planned : r.fixed || r.place.offset + r.place.bytes <= room_for_blocks(t);
}

// Contents that were written outside of steps took another copy's validity away: where that was, it is brought again.
void scheduler::bring_again(std::uint32_t block, tier t, byte_count offset) {
  planned_entry e;
  e.what = planned_entry::kind::bring;
  e.index = block;
  e.where = t;
  e.offset = offset;
  e.turn = follow_.window.empty() ? follow_.turn : follow_.window.front().turn;
  follow_.window.push_front(e);
}

// What was granted memory and has not been used gives it back; what is under way ends as usual.
void scheduler::stop_following() {
  if (!follow_.active) {
    return;
  }
  follow_.active = false;
  quiet_ = false;
  const auto give_back = [&](std::uint32_t block, tier t) {
    const replica& r = copy_of(blocks_[block], t);
    if (r.now == replica::state::placed && !r.held() && !blocks_[block].moving) {
      drop_copy(block, t);
    }
  };
  for (const planned_entry& e : follow_.window) {
    if (e.done || e.started || !e.placed) {
      continue;
    }
    if (e.what == planned_entry::kind::bring) {
      give_back(e.index, e.where);
    } else if (e.what == planned_entry::kind::step) {
      for (const block_access& a : steps_[e.index].blocks) {
        give_back(a.block, tier_of(steps_[e.index].where));
      }
    }
  }
  follow_.window.clear();
  follow_.entry_of_step.clear();
  changed_table_ = true;
  kick();
}

void scheduler::follow() {
  ++follow_.pass;
  follow_.marks.resize(blocks_.size());
  const std::size_t operations = follow_.plan->steady.operations.size();
  std::array<bool, 2> full{};  // a tier in which an earlier operation waits for memory grants none to later ones
  while (follow_.window.size() < std::min(operations, longest_window)) {
    take_next_operation();
  }
  for (planned_entry& e : follow_.window) {
    if (!e.done) {
      advance(e, full);
    }
    if (!e.done) {
      mark(e);
    }
  }
  while (!follow_.window.empty() && follow_.window.front().done) {
    const planned_entry& e = follow_.window.front();
    if (e.what == planned_entry::kind::step) {
      follow_.entry_of_step[e.index] = nullptr;
    }
    follow_.window.pop_front();
  }
  close_gaps();
}

// The next operation finds enough memory, but in pieces: copies between them leave, and come back after it.
void scheduler::close_gaps() {
  planned_entry& first = follow_.window.front();
  const auto wanted = memory_wanted_by(first);
  if (!wanted || first.gaps_closed) {
    return;
  }
  const std::uint32_t block = wanted->first;
  const tier t = wanted->second;
  const byte_count bytes = arena(t).rounded(blocks_[block].bytes);
  if (arena(t).free_bytes() < bytes || arena(t).largest_hole() >= bytes) {
    return;
  }
  const std::optional<window> found = arena(t).find_window(bytes, [&](byte_count offset, const occupant& who) {
    return victim_score(t, offset, who, {need::kind::request, 0});
  });
  if (!found) {
    return;
  }
  first.gaps_closed = true;
  changed_table_ = true;
  const auto here = follow_.window.begin();
  for (const byte_count offset : found->victims) {
    planned_entry e;
    e.index = arena(t).occupants().at(offset).index;
    e.where = t;
    e.offset = offset;
    e.turn = first.turn;
    e.what = planned_entry::kind::leave;
    follow_.window.insert(here, e);
    e.what = planned_entry::kind::bring;
    e.gaps_closed = true;  // it takes what it finds: copies that made way for each other would never end
    follow_.window.insert(std::next(here), e);
  }
}

std::optional<std::pair<std::uint32_t, tier>> scheduler::memory_wanted_by(const planned_entry& e) {
  if (e.placed || e.done || follow_.strict) {
    return std::nullopt;
  }
  if (e.what == planned_entry::kind::bring) {
    return std::pair(e.index, e.where);
  }
  if (e.what != planned_entry::kind::step) {
    return std::nullopt;
  }
  for (std::uint32_t p = follow_.plan->first_place[e.operation]; p < follow_.plan->first_place[e.operation + 1]; ++p) {
    const planned_place& place = follow_.plan->places[p];
    if (copy_of(blocks_[place.block], place.where).now == replica::state::absent) {
      return std::pair(place.block, place.where);
    }
  }
  return std::nullopt;
}

void scheduler::take_next_operation() {
  planned_entry e = entry_of(*follow_.plan, follow_.next);
  e.turn = ++follow_.turn;
  follow_.next = (follow_.next + 1) % static_cast<std::uint32_t>(follow_.plan->steady.operations.size());
  follow_.window.push_back(e);
  if (e.what == planned_entry::kind::step) {
    follow_.entry_of_step[e.index] = &follow_.window.back();
  }
}

void scheduler::advance(planned_entry& e, std::array<bool, 2>& full) {
  switch (e.what) {
    case planned_entry::kind::step:
      advance_step(e, full);
      break;
    case planned_entry::kind::bring:
      advance_bring(e, full);
      break;
    case planned_entry::kind::write_back:
      advance_write_back(e);
      break;
    case planned_entry::kind::leave:
      advance_leave(e);
      break;
  }
}

block_marks& scheduler::marks_of(std::uint32_t block) {
  block_marks& m = follow_.marks[block];
  if (m.pass != follow_.pass) {
    m = {};
    m.pass = follow_.pass;
  }
  return m;
}

void scheduler::mark(const planned_entry& e) {
  if (e.what == planned_entry::kind::step) {
    const step_plan& step = steps_[e.index];
    for (const block_access& a : step.blocks) {
      block_marks& m = marks_of(a.block);
      m.used[index_of(tier_of(step.where))] = true;
      m.changed = m.changed || modifies(a.how) || has(a.how, uses::free);
    }
    return;
  }
  block_marks& m = marks_of(e.index);
  const std::size_t t = index_of(e.where);
  if (e.what == planned_entry::kind::bring && e.started) {
    m.arriving[t] = true;
    return;
  }
  m.moved = true;
  m.pending[t] = m.pending[t] || e.what != planned_entry::kind::write_back;
}

// Beyond it lie the workspaces of steps.
byte_count scheduler::room_for_blocks(tier t) { return arena(t).capacity() - follow_.workspace[index_of(t)]; }

std::optional<extent> scheduler::planned_place_or_hole(const block_record& b, tier t, byte_count offset) {
  const occupant who{occupant::kind::block, b.index, b.bytes};
  if (follow_.strict) {
    const extent place{offset, arena(t).rounded(b.bytes)};
    return arena(t).allocate_at(place, who) ? std::optional(place) : std::nullopt;
  }
  const bool small = 2 * b.bytes <= follow_.largest[index_of(t)];
  return small ? arena(t).allocate_highest(b.bytes, who, room_for_blocks(t))
               : arena(t).allocate_lowest(b.bytes, who, room_for_blocks(t));
}

bool scheduler::take_planned_place(std::uint32_t block, tier t, byte_count offset) {
  block_record& b = blocks_[block];
  replica& r = copy_of(b, t);
  if (r.now != replica::state::absent) {
    return false;  // the stay before has not ended
  }
  if (!r.fixed) {
    const std::optional<extent> place = planned_place_or_hole(b, t, offset);
    if (!place) {
      return false;
    }
    r.place = *place;
  }
  r.now = replica::state::placed;
  changed_table_ = true;
  return true;
}

void scheduler::advance_step(planned_entry& e, std::array<bool, 2>& full) {
  if (e.started) {
    return;  // ends with its lease
  }
  const step_plan& step = steps_[e.index];
  const tier t = tier_of(step.where);
  if (!e.placed && !full[index_of(t)]) {
    e.placed = true;
    for (std::uint32_t p = follow_.plan->first_place[e.operation]; p < follow_.plan->first_place[e.operation + 1];
         ++p) {
      const planned_place& place = follow_.plan->places[p];
      const replica& r = copy_of(blocks_[place.block], t);
      // A step of which only some copies found memory has them from an earlier pass.
      const block_marks& m = marks_of(place.block);
      const bool there = r.has_memory() && r.now != replica::state::arriving && !m.moved && !m.changed;
      const bool may_take = !m.pending[index_of(t)];
      e.placed = (there || (may_take && take_planned_place(place.block, t, place.offset))) && e.placed;
    }
  }
  full[index_of(t)] = full[index_of(t)] || !e.placed;
  const bool before = e.may_start;
  e.may_start = e.placed && std::all_of(step.blocks.begin(), step.blocks.end(), [&](const block_access& a) {
                  const block_marks& m = marks_of(a.block);
                  const bool ends_copies = modifies(a.how) || has(a.how, uses::free);
                  return !m.pending[index_of(t)] && !(ends_copies && m.moved);
                });
  changed_table_ = changed_table_ || before != e.may_start;
}

void scheduler::advance_bring(planned_entry& e, std::array<bool, 2>& full) {
  block_record& b = blocks_[e.index];
  replica& r = copy_of(b, e.where);
  if (e.started) {
    e.done = !b.moving;
    return;
  }
  const block_marks& m = marks_of(e.index);
  const bool clear = !m.moved && !m.changed && !m.arriving[0] && !m.arriving[1];
  if (clear && (b.initialised == 0 || r.valid())) {
    e.done = true;
    if (e.placed && r.now == replica::state::placed && !r.held()) {
      drop_copy(e.index, e.where);
    }
    return;
  }
  if (!e.placed) {
    bool& no_room = full[index_of(e.where)];
    // Fixed memory is the block's own: it is not asked for in turn, and not before the earlier contents have gone.
    // Nor is memory taken before an earlier copy has left, which may not have been there to begin with.
    const bool turn = r.fixed ? clear : !no_room && !m.pending[index_of(e.where)];
    e.placed = turn && take_planned_place(e.index, e.where, e.offset);
    no_room = no_room || (!e.placed && !r.fixed);
  }
  const replica& other = copy_of(b, e.where == tier::device ? tier::host : tier::device);
  const bool has_source = other.valid() || b.stored || b.zero;
  if (e.placed && clear && has_source && b.writers == 0 && !b.moving && !b.in_place) {
    start_fetch(e.index, e.where, e.turn, false);
    e.started = true;
    e.done = !b.moving;
  }
}

void scheduler::advance_write_back(planned_entry& e) {
  block_record& b = blocks_[e.index];
  if (e.started) {
    e.done = !b.moving;
    return;
  }
  const block_marks& m = marks_of(e.index);
  if (m.moved || m.changed || m.arriving[0] || m.arriving[1]) {
    return;
  }
  if (b.initialised == 0 || b.stored || b.zero || store_ == nullptr) {
    e.done = true;
  } else if (b.host.valid() && b.writers == 0 && !b.moving && !b.in_place) {
    start_write_back(e.index, e.turn);
    e.started = true;
  }
}

// Gives up a copy; contents that would be lost are moved on first.
void scheduler::advance_leave(planned_entry& e) {
  block_record& b = blocks_[e.index];
  replica& r = copy_of(b, e.where);
  const block_marks& m = marks_of(e.index);
  if (m.moved || m.changed || m.arriving[0] || m.arriving[1] || m.used[index_of(e.where)]) {
    return;
  }
  if (!r.has_memory()) {
    e.done = true;
    return;
  }
  if (b.moving || b.in_place || r.held()) {
    return;
  }
  const replica& other = copy_of(b, e.where == tier::device ? tier::host : tier::device);
  const bool nothing_lost = !r.valid() || b.initialised == 0 || b.stored || b.zero || other.valid();
  if (nothing_lost) {
    drop_copy(e.index, e.where);
    e.done = true;
  } else if (r.fixed) {
    e.done = true;  // the only copy, and at home
  } else {
    evict_now(e.index, e.where);
    e.started = true;
  }
}

bool scheduler::is_expected(const step_plan& step) const {
  if (!step.position) {
    return false;
  }
  const planned_entry* e = follow_.entry_of_step[*step.position];
  return e != nullptr ? !e->started : *step.position == follow_.expected;
}

bool scheduler::may_grant(const step_plan& step) const {
  if (!follow_.active) {
    return true;
  }
  const planned_entry* e = step.position ? follow_.entry_of_step[*step.position] : nullptr;
  return e != nullptr && e->may_start && !e->started;
}

void scheduler::note_granted(const step_plan& step) {
  if (!follow_.active) {
    return;
  }
  follow_.entry_of_step[*step.position]->started = true;
  if (*step.position == follow_.expected) {
    follow_.expected = (follow_.expected + 1) % static_cast<std::uint32_t>(steps_.size());
  }
}

void scheduler::note_passed(const step_plan& step) {
  if (!follow_.active || !step.position) {
    return;
  }
  planned_entry* e = follow_.entry_of_step[*step.position];
  if (e != nullptr && e->started) {
    e->done = true;
  }
}

}  // namespace forebay::detail
