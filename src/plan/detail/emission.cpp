#include "plan/detail/emission.hpp"

#include <algorithm>

namespace forebay::plan::detail {
namespace {

/// Every item has a path of its own for good, in proportion to the paths' rates.
std::vector<std::uint32_t> choose_paths(const trace& t, const machine& m) {
  std::vector<std::uint32_t> path_of(t.item_bytes.size(), 0);
  std::vector<double> busy(m.storage.size(), 0.0);
  for (item_index i = 0; i < path_of.size() && busy.size() > 1; ++i) {
    std::size_t best = 0;
    const auto after = [&](std::size_t p) {
      const auto bytes = static_cast<double>(t.item_bytes[i]);
      return busy[p] + bytes / m.storage[p].read_rate + bytes / m.storage[p].write_rate;
    };
    for (std::size_t p = 1; p < busy.size(); ++p) {
      best = after(p) < after(best) ? p : best;
    }
    busy[best] = after(best);
    path_of[i] = static_cast<std::uint32_t>(best);
  }
  return path_of;
}

bool is_present_at_wrap(const gap& g, std::uint32_t positions) {
  return g.to >= positions && (g.kept || (g.fetch != not_fetched && g.fetch < positions));
}

}  // namespace

emission::emission(const trace& t, const machine& m, const access_lists& lists, const residency_plan& plan)
    : trace_(t),
      machine_(m),
      lists_(lists),
      plan_(plan),
      next_use_(t),
      device_fetches_(t.steps.size()),
      host_fetches_(3 * t.steps.size()),
      host_leaves_(3 * t.steps.size()),
      path_of_(choose_paths(t, m)),
      at_(t.item_bytes.size(), copies::none) {
  const auto steps = static_cast<std::uint32_t>(t.steps.size());
  const auto list = [](std::vector<std::vector<std::uint32_t>>& by_position, const std::vector<gap>& gaps) {
    const auto count = static_cast<std::uint32_t>(by_position.size());
    for (std::uint32_t g = 0; g < gaps.size(); ++g) {
      if (gaps[g].fetch != not_fetched) {
        by_position[gaps[g].fetch % count].push_back(g);
      }
    }
    for (auto& here : by_position) {  // a gap's deadline, counted from its fetch
      std::sort(here.begin(), here.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(gaps[a].to - gaps[a].fetch, a) < std::pair(gaps[b].to - gaps[b].fetch, b);
      });
    }
  };
  list(device_fetches_, plan.device);
  list(host_fetches_, plan.host);
  for (std::uint32_t g = 0; g < plan.host.size(); ++g) {
    host_leaves_[plan.host[g].from % (3 * steps)].push_back(g);
  }
}

std::vector<copies> emission::start_by_plan() const {
  const auto steps = static_cast<std::uint32_t>(trace_.steps.size());
  std::vector<copies> start(trace_.item_bytes.size(), copies::none);
  for (const gap& g : plan_.device) {
    if (is_present_at_wrap(g, steps)) {
      start[g.item] = start[g.item] | copies::device;
    }
  }
  for (const gap& g : plan_.host) {
    if (is_present_at_wrap(g, 3 * steps)) {
      start[g.item] = start[g.item] | copies::host;
    } else if (g.parked && g.to >= 3 * steps) {
      start[g.item] = start[g.item] | copies::device;
    }
  }
  for (item_index i = 0; i < start.size(); ++i) {
    if (lists_.first_of_item[i] == lists_.first_of_item[i + 1]) {
      continue;  // nobody uses it
    }
    const bool lives = needs_contents(lists_.all[lists_.of_item[lists_.first_of_item[i]]].how);
    if (!lives) {
      start[i] = copies::none;
    } else if (start[i] == copies::none) {
      start[i] = machine_.storage.empty() ? copies::host : copies::storage;
    }
  }
  return start;
}

bool emission::run(const std::vector<copies>& at_start) {
  at_ = at_start;
  operations_.clear();
  used_ = {};
  pinned_.assign(trace_.item_bytes.size(), 0);
  evictable_ = {};
  now_ = 0;
  for (item_index i = 0; i < at_.size(); ++i) {
    note_change(i);
    used_[0] += has(at_[i], copies::device) ? trace_.item_bytes[i] : 0;
    used_[1] += has(at_[i], copies::host) ? trace_.item_bytes[i] : 0;
  }
  if (!fits(copies::device, 0) || !fits(copies::host, 0)) {
    return false;
  }
  for (std::uint32_t step = 0; step < trace_.steps.size(); ++step) {
    if (!run_step(step)) {
      return false;
    }
  }
  return true;
}

bool emission::run_step(std::uint32_t step) {
  now_ = step;
  for (std::uint32_t a = lists_.first_of_step[step]; a < lists_.first_of_step[step + 1]; ++a) {
    pinned_[lists_.all[a].item] = step + 1;
  }
  fetch_to_host(host_position(step, host_moment::source));
  for (const std::uint32_t g : device_fetches_[step]) {
    fetch_to_device(plan_.device[g]);
  }
  leave_host(host_position(step, host_moment::source));
  fetch_to_host(host_position(step, host_moment::step));
  if (!assemble(step)) {
    return false;
  }
  operations_.push_back(plan::run_step(step));
  apply(step);
  now_ = step + 1;
  for (const item_access& a : trace_.steps[step].accesses) {
    note_change(a.item);
  }
  forget_dead(step);
  if (trace_.steps[step].where == place::device) {
    leave_device(step);
  } else {
    leave_host(host_position(step, host_moment::step));
  }
  leave_host(host_position(step, host_moment::arrival));
  fetch_to_host(host_position(step, host_moment::arrival));
  return true;
}

/// Everything that the step needs in its tier, and room for what it creates.
bool emission::assemble(std::uint32_t step) {
  const trace_step& s = trace_.steps[step];
  const copies own = s.where == place::device ? copies::device : copies::host;
  byte_count created = workspace_room(s);
  for (const item_access& a : s.accesses) {
    if (has(at_[a.item], own)) {
      continue;
    }
    if (!needs_contents(a.how)) {
      created += trace_.item_bytes[a.item];
    } else if (!(own == copies::device ? bring_to_device(a.item) : bring_to_host(a.item))) {
      return false;
    }
  }
  return make_room(own, created);
}

void emission::apply(std::uint32_t step) {
  const trace_step& s = trace_.steps[step];
  const copies own = s.where == place::device ? copies::device : copies::host;
  const auto count = [&](item_index item, copies now) {
    for (const copies tier : {copies::device, copies::host}) {
      used(tier) -= has(at_[item], tier) ? trace_.item_bytes[item] : 0;
      used(tier) += has(now, tier) ? trace_.item_bytes[item] : 0;
    }
    at_[item] = now;
  };
  for (const item_access& a : s.accesses) {
    if (modifies(a.how)) {
      count(a.item, own);
    }
    if (has(a.how, uses::free)) {
      count(a.item, copies::none);
    }
  }
}

/// What the next access creates anew is of no use until then.
void emission::forget_dead(std::uint32_t step) {
  for (std::uint32_t a = lists_.first_of_step[step]; a < lists_.first_of_step[step + 1]; ++a) {
    const item_index item = lists_.all[a].item;
    if (!needs_contents(lists_.all[lists_.next_access[a]].how)) {
      for (const copies tier : {copies::device, copies::host, copies::storage}) {
        if (has(at_[item], tier)) {
          drop(item, tier);
        }
      }
    }
  }
}

void emission::leave_device(std::uint32_t step) {
  for (std::uint32_t a = lists_.first_of_step[step]; a < lists_.first_of_step[step + 1]; ++a) {
    const item_index item = lists_.all[a].item;
    const gap& g = plan_.device[a];
    if (at_[item] == copies::none) {
      continue;
    }
    pinned_[item] = 0;
    const std::uint32_t next = next_use_.distance_after(item, step, 0) + step;
    const trace_step& user = trace_.steps[next % trace_.steps.size()];
    const bool host_reads = user.where == place::host &&
                            std::any_of(user.accesses.begin(), user.accesses.end(),
                                        [&](const item_access& u) { return u.item == item && needs_contents(u.how); });
    if (at_[item] == copies::device && (host_reads || !g.kept) && !g.parked) {
      static_cast<void>(send_down(item));  // else it stays until room is found
    }
    if (!g.kept && at_[item] != copies::device) {
      drop(item, copies::device);
    }
  }
}

void emission::leave_host(std::uint32_t position) {
  for (const std::uint32_t i : host_leaves_[position]) {
    const gap& g = plan_.host[i];
    pinned_[g.item] = position % 3 == static_cast<std::uint32_t>(host_moment::step) ? 0 : pinned_[g.item];
    if (g.kept || !has(at_[g.item], copies::host)) {
      continue;
    }
    if (g.parked && at_[g.item] == copies::host && fits(copies::device, trace_.item_bytes[g.item])) {
      move(g.item, link::h2d);
      drop(g.item, copies::host);
    } else {
      static_cast<void>(release_copy(g.item, copies::host));
    }
  }
}

void emission::fetch_to_device(const gap& g) {
  if (!has(at_[g.item], copies::device) && at_[g.item] != copies::none &&
      fits(copies::device, trace_.item_bytes[g.item])) {
    static_cast<void>(bring_to_device(g.item));
  }
}

void emission::fetch_to_host(std::uint32_t position) {
  for (const std::uint32_t i : host_fetches_[position]) {
    const item_index item = plan_.host[i].item;
    if (!fits(copies::host, trace_.item_bytes[item])) {
      continue;
    }
    if (at_[item] == copies::storage) {
      move(item, link::storage_read);
    } else if (plan_.host[i].parked && at_[item] == copies::device) {
      move(item, link::d2h);
      if (!stays_on_device(plan_.host[i])) {
        drop(item, copies::device);
      }
    }
  }
}

/// A parked copy that a device step made is one that the device tier keeps for its own next step.
bool emission::stays_on_device(const gap& parked) const {
  const bool made_there = parked.from % 3 == static_cast<std::uint32_t>(host_moment::arrival);
  return made_there && plan_.device[parked.access].kept;
}

bool emission::bring_to_device(item_index item) {
  if (!bring_to_host(item) || !make_room(copies::device, trace_.item_bytes[item])) {
    return false;
  }
  move(item, link::h2d);
  return true;
}

bool emission::bring_to_host(item_index item) {
  if (has(at_[item], copies::host)) {
    return true;
  }
  if (has(at_[item], copies::device)) {
    return send_down(item);
  }
  const std::uint32_t before = pinned_[item];
  pinned_[item] = now_ + 1;
  const bool room = make_room(copies::host, trace_.item_bytes[item]);
  pinned_[item] = before;
  if (room) {
    move(item, link::storage_read);
  }
  return room;
}

bool emission::send_down(item_index item) {
  const std::uint32_t before = pinned_[item];
  pinned_[item] = now_ + 1;
  const bool room = make_room(copies::host, trace_.item_bytes[item]);
  pinned_[item] = before;
  if (room) {
    move(item, link::d2h);
  }
  return room;
}

bool emission::fits(copies tier, byte_count bytes) const {
  return tier == copies::device ? used_[0] + bytes <= machine_.device_capacity
                                : used_[1] + bytes <= machine_.host_capacity;
}

bool emission::make_room(copies tier, byte_count bytes) {
  while (!fits(tier, bytes)) {
    if (!evict_one(tier)) {
      return false;
    }
  }
  return true;
}

/// The later an item is used next, the sooner it leaves; what can be dropped at once before what must be moved.
std::uint64_t emission::eviction_key(item_index item, copies tier) const {
  const auto steps = static_cast<std::uint32_t>(trace_.steps.size());
  const std::uint64_t next = now_ + std::uint64_t{next_use_.distance(item, now_ % steps)};
  return 2 * next + (at_[item] != tier ? 1 : 0);
}

/// The heaps may hold what has changed since; whoever takes an entry looks at the item again.
void emission::note_change(item_index item) {
  for (const copies tier : {copies::device, copies::host}) {
    if (has(at_[item], tier)) {
      auto& heap = evictable_[tier == copies::device ? 0 : 1];
      heap.emplace_back(eviction_key(item, tier), item);
      std::push_heap(heap.begin(), heap.end());
    }
  }
}

bool emission::evict_one(copies tier) {
  auto& heap = evictable_[tier == copies::device ? 0 : 1];
  std::vector<std::pair<std::uint64_t, item_index>> stays;
  bool released = false;
  while (!released && !heap.empty()) {
    const auto [key, item] = heap.front();
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    if (!has(at_[item], tier)) {
      continue;
    }
    const std::uint64_t now = eviction_key(item, tier);
    if (now < key) {
      heap.emplace_back(now, item);
      std::push_heap(heap.begin(), heap.end());
    } else if (pinned_[item] != 0 || !release_copy(item, tier)) {
      stays.emplace_back(now, item);
    } else {
      released = true;
    }
  }
  auto& again = evictable_[tier == copies::device ? 0 : 1];
  for (const auto& entry : stays) {
    again.push_back(entry);
    std::push_heap(again.begin(), again.end());
  }
  return released;
}

/// Gives up a copy, after moving it on when it is the last. False when there is nowhere to go.
bool emission::release_copy(item_index item, copies tier) {
  if (at_[item] == tier) {
    if (tier == copies::device) {
      if (!fits(copies::host, trace_.item_bytes[item]) && machine_.storage.empty()) {
        return false;
      }
      if (!send_down(item)) {
        return false;
      }
    } else if (machine_.storage.empty()) {
      return false;
    } else {
      move(item, link::storage_write);
    }
  }
  drop(item, tier);
  return true;
}

void emission::drop(item_index item, copies tier) {
  operations_.push_back(drop_copy(item, tier));
  at_[item] = without(at_[item], tier);
  if (tier != copies::storage) {
    used(tier) -= trace_.item_bytes[item];
  }
}

void emission::move(item_index item, link over) {
  operations_.push_back(move_item(item, over, over == link::h2d || over == link::d2h ? 0 : path_of_[item]));
  const copies target = target_of(over);
  at_[item] = at_[item] | target;
  if (target != copies::storage) {
    used(target) += trace_.item_bytes[item];
  }
  note_change(item);
}

std::optional<schedule> emit(const trace& t, const machine& m, const access_lists& lists, const residency_plan& plan) {
  emission e(t, m, lists, plan);
  std::vector<copies> start = e.start_by_plan();
  constexpr int attempts = 8;  // an iteration that ends as it starts is found by running on
  for (int i = 0; i < attempts; ++i) {
    if (!e.run(start)) {
      return std::nullopt;
    }
    if (e.at_end() == start) {
      return schedule{e.operations(), start, e.paths()};
    }
    start = e.at_end();
  }
  return std::nullopt;
}

}  // namespace forebay::plan::detail
