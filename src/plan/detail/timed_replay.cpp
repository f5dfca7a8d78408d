#include "plan/detail/timed_replay.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace forebay::plan::detail {
namespace {

constexpr std::array<copies, 3> by_index{copies::device, copies::host, copies::storage};
constexpr std::array<const char*, 3> tier_names{"device", "host", "storage"};

constexpr std::size_t index_of(copies tier) { return tier == copies::device ? 0 : (tier == copies::host ? 1 : 2); }

constexpr std::size_t tier_of(place where) { return where == place::device ? 0 : 1; }

std::vector<bool> joining_steps(const trace& t, const execution_model& model) {
  std::vector<bool> joins(t.steps.size(), false);
  for (std::size_t s = 0; s < joins.size(); ++s) {
    const std::string& phase = t.steps[s].phase;
    const bool first = s == 0 || t.steps[s - 1].phase != phase;
    joins[s] = s == 0 ? model.iterations_join
                      : first && std::find(model.joining_phases.begin(), model.joining_phases.end(), phase) !=
                                     model.joining_phases.end();
  }
  return joins;
}

}  // namespace

std::optional<double> granted_memory::grant(byte_count bytes) {
  while (free_ < bytes) {
    if (releases_.empty()) {
      return std::nullopt;
    }
    free_ += releases_.top().bytes;
    last_ = std::max(last_, releases_.top().time);
    releases_.pop();
  }
  free_ -= bytes;
  return last_;
}

timed_replay::timed_replay(const trace& t, const machine& m, const schedule& s, const execution_model& model)
    : trace_(t),
      machine_(m),
      schedule_(s),
      single_caller_(model.single_caller),
      joins_(joining_steps(t, model)),
      items_(t.item_bytes.size()),
      memory_{granted_memory(m.device_capacity), granted_memory(m.host_capacity)},
      paths_until_(m.storage.size()),
      times_(s.operations.size()) {
  for (item_index i = 0; i < items_.size(); ++i) {
    items_[i].path = s.stored_on[i];
    for (std::size_t tier = 0; tier < tiers; ++tier) {
      items_[i].in[tier].present = has(s.at_start[i], by_index[tier]);
      if (items_[i].in[tier].present && tier < memory_.size() && !memory_[tier].grant(t.item_bytes[i])) {
        obstacle_ = fmt::format("{} does not fit on the {} at the start", name(i), tier_names[tier]);
      }
    }
  }
}

bool timed_replay::run_iteration() {
  if (!obstacle_.empty()) {
    return false;
  }
  for (std::size_t i = 0; i < schedule_.operations.size(); ++i) {
    if (!run(schedule_.operations[i], times_[i])) {
      obstacle_ = fmt::format("operation {}: {}", i, obstacle_);
      return false;
    }
    end_ = std::max(end_, times_[i].finish);
  }
  return true;
}

bool timed_replay::run(const operation& op, operation_times& when) {
  switch (op.what) {
    case operation::kind::step:
      return run_step(op.index, when);
    case operation::kind::transfer:
      return run_transfer(op, when);
    case operation::kind::drop:
      return run_drop(op, when);
  }
  return false;
}

bool timed_replay::run_step(std::uint32_t index, operation_times& when) {
  const trace_step& step = trace_.steps[index];
  const std::size_t tier = tier_of(step.where);
  byte_count needed = workspace_room(step);
  if (joins_[index]) {
    steps_until_.fill(std::max(steps_until_[0], steps_until_[1]));  // this and all later steps, on either engine
  }
  double start = steps_until_[tier];
  if (!step_may_start(step, index, needed, start)) {
    return false;
  }
  double memory = 0.0;
  if (needed > 0) {
    const std::optional<double> granted = memory_[tier].grant(needed);
    if (!granted) {
      return stop(fmt::format("step {} needs {} bytes more than the {} has", index, needed, tier_names[tier]));
    }
    memory = *granted;
  }
  start = std::max(start, memory);
  if (single_caller_) {
    caller_until_ = std::max(caller_until_, granted_at(step, memory));
    start = std::max(start, caller_until_);
  }
  when = {start, start + step.seconds};
  steps_until_[tier] = when.finish;
  if (step.where == place::host) {
    caller_until_ = when.finish;
  }
  end_step(step, when);
  return true;
}

/// When its memory is given and its contents are there or on their way: then a single caller goes on.
double timed_replay::granted_at(const trace_step& step, double memory) const {
  double at = memory;
  for (const item_access& a : step.accesses) {
    const copy_state& own = items_[a.item].in[tier_of(step.where)];
    at = own.present ? std::max(at, own.began) : at;
  }
  return at;
}

bool timed_replay::step_may_start(const trace_step& step, std::uint32_t index, byte_count& needed, double& start) {
  const std::size_t tier = tier_of(step.where);
  for (const item_access& a : step.accesses) {
    const item_state& item = items_[a.item];
    const copy_state& own = item.in[tier];
    if (needs_contents(a.how)) {
      if (!own.present) {
        return stop(fmt::format("step {} needs {} on the {}", index, name(a.item), tier_names[tier]));
      }
      start = std::max(start, own.valid);
    } else if (!own.present) {
      needed += trace_.item_bytes[a.item];
    }
    start = std::max(start, item.modified_until);
    if (modifies(a.how) || has(a.how, uses::free)) {
      start = std::max({start, item.steps_until, item.moved_until});
    }
  }
  return true;
}

void timed_replay::end_step(const trace_step& step, const operation_times& when) {
  const std::size_t tier = tier_of(step.where);
  memory_[tier].release(workspace_room(step), when.finish);
  for (const item_access& a : step.accesses) {
    item_state& item = items_[a.item];
    copy_state& own = item.in[tier];
    item.steps_until = std::max(item.steps_until, when.finish);
    if (modifies(a.how)) {
      item.modified_until = when.finish;
      for (std::size_t other = 0; other < tiers; ++other) {
        if (other != tier && item.in[other].present) {
          release(a.item, other, when.start);
        }
      }
      own.present = true;
      own.began = when.start;
      own.valid = when.finish;
    }
    own.read_until = std::max(own.read_until, when.finish);
    if (has(a.how, uses::free)) {
      item.modified_until = when.finish;
      for (std::size_t each = 0; each < tiers; ++each) {
        if (item.in[each].present) {
          release(a.item, each, when.finish);
        }
      }
    }
  }
}

bool timed_replay::run_transfer(const operation& op, operation_times& when) {
  item_state& item = items_[op.index];
  const std::size_t from = index_of(source_of(op.over));
  const std::size_t to = index_of(target_of(op.over));
  if (!item.in[from].present || item.in[to].present) {
    return stop(fmt::format("{} is {} the {}", name(op.index), item.in[to].present ? "already on" : "not on",
                            tier_names[item.in[to].present ? to : from]));
  }
  if (op.over == link::storage_read && item.path != op.path) {
    return stop(fmt::format("{} is on path {}, not {}", name(op.index), item.path, op.path));
  }
  const bool reads = op.over == link::storage_read || op.over == link::h2d;
  const bool storage = op.over == link::storage_read || op.over == link::storage_write;
  double& engine = storage ? paths_until_[op.path][machine_.half_duplex_storage || reads ? 0 : 1]
                           : device_links_until_[reads ? 0 : 1];
  double start = std::max(engine, item.in[from].valid);
  if (to < memory_.size()) {
    const std::optional<double> granted = memory_[to].grant(trace_.item_bytes[op.index]);
    if (!granted) {
      return stop(fmt::format("no room for {} on the {}", name(op.index), tier_names[to]));
    }
    start = std::max(start, *granted);
  }
  const double rate = storage ? (reads ? machine_.storage[op.path].read_rate : machine_.storage[op.path].write_rate)
                              : (reads ? machine_.h2d_rate : machine_.d2h_rate);
  when = {start, start + static_cast<double>(trace_.item_bytes[op.index]) / rate};
  engine = when.finish;
  item.in[from].read_until = std::max(item.in[from].read_until, when.finish);
  item.in[to] = {true, when.start, when.finish, when.finish};
  item.moved_until = std::max(item.moved_until, when.finish);
  if (op.over == link::storage_write) {
    item.path = op.path;
  }
  return true;
}

bool timed_replay::run_drop(const operation& op, operation_times& when) {
  item_state& item = items_[op.index];
  const std::size_t tier = index_of(op.gone);
  if (!item.in[tier].present) {
    return stop(fmt::format("{} is not on the {}", name(op.index), tier_names[tier]));
  }
  double others_valid = -1.0;
  for (std::size_t other = 0; other < tiers; ++other) {
    if (other != tier && item.in[other].present) {
      others_valid = others_valid < 0.0 ? item.in[other].valid : std::min(others_valid, item.in[other].valid);
    }
  }
  const double at = std::max({item.in[tier].read_until, item.in[tier].valid, others_valid});
  when = {at, at};
  release(op.index, tier, at);
  return true;
}

void timed_replay::release(item_index item, std::size_t tier, double at) {
  items_[item].in[tier] = {};
  if (tier < memory_.size()) {
    memory_[tier].release(trace_.item_bytes[item], at);
  }
}

bool timed_replay::stop(std::string why) {
  obstacle_ = std::move(why);
  return false;
}

std::string timed_replay::name(item_index item) const {
  return fmt::format("item {} ({} bytes)", item, trace_.item_bytes[item]);
}

}  // namespace forebay::plan::detail
