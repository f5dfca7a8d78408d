#include "plan/detail/window_charges.hpp"

#include <algorithm>
#include <utility>

#include "plan/detail/cyclic_cursor.hpp"
#include "plan/detail/storage_prices.hpp"

namespace forebay::plan::detail {
window_charges::window_charges(const trace& t, const machine& m, const timeline& time, const alike_items& items,
                               const item_demands& demands, std::vector<std::int64_t> cuts, byte_count least_room)
    : trace_(t),
      machine_(m),
      time_(time),
      items_(items),
      demands_(demands),
      cuts_(std::move(cuts)),
      least_room_(least_room),
      seen_(items.stories.size(), 0),
      seconds_(cuts_.size() * cuts_.size()),
      table_(cuts_.size() * cuts_.size()) {
  charge_steps();
  for (std::size_t c = 0; c < cuts_.size(); ++c) {
    charge_other_engine(c);
    if (time_.clock == place::device) {
      charge_h2d(c);
      charge_d2h(c);
    }
    if (!m.storage.empty()) {
      find_reads(c);
      find_writes(c);
    }
  }
  if (!m.storage.empty()) {
    charge_storage();
  }
}

resource window_charges::charged(std::size_t from, std::size_t count) const {
  const charge& c = at(from, count);
  if (c.what != resource::storage || (c.read > 0.0 && c.written > 0.0 && machine_.half_duplex_storage)) {
    return c.what;
  }
  return best_storage_prices(machine_, c.read, c.written).read > 0.0 ? resource::storage_read : resource::storage_write;
}

void window_charges::raise(std::size_t from, std::size_t count, double seconds, resource what, bool capacity) {
  double& most = seconds_[from * cuts_.size() + count - 1];
  if (seconds > most) {
    most = seconds;
    at(from, count).what = what;
    at(from, count).capacity = capacity;
  }
}

/// Begins a round in which the items of the step at that boundary have been seen. \returns the bytes that it takes.
double window_charges::enter(std::int64_t boundary) {
  ++round_;
  const auto step = static_cast<std::size_t>(boundary / 2);
  for (const item_access& a : trace_.steps[time_.clock_steps[step]].accesses) {
    seen_[items_.group_of[a.item]] = round_;
  }
  return static_cast<double>(time_.working_set[step]);
}

bool window_charges::is_shut(std::size_t clock_step) const {
  return time_.clock == place::device && time_.working_set[clock_step] + least_room_ > machine_.device_capacity;
}

double window_charges::shut_seconds(std::size_t from, std::size_t count) const {
  return shut_[static_cast<std::size_t>(cut(from + count))] - shut_[static_cast<std::size_t>(cut(from))];
}

void window_charges::charge_steps() {
  shut_.assign(1, 0.0);
  std::vector<double> before(1, 0.0);  // by boundary of two iterations: the seconds of the steps that began earlier
  for (std::int64_t k = 0; k < 2 * time_.sub_slots; ++k) {
    const auto step = static_cast<std::size_t>(k % time_.sub_slots / 2);
    const double seconds = k % 2 == 0 ? trace_.steps[time_.clock_steps[step]].seconds : 0.0;
    before.push_back(before.back() + seconds);
    shut_.push_back(shut_.back() + (is_shut(step) ? seconds : 0.0));
  }
  for (std::size_t from = 0; from < cuts_.size(); ++from) {
    for (std::size_t n = 1; n <= cuts_.size(); ++n) {
      seconds_[from * cuts_.size() + n - 1] =
          before[static_cast<std::size_t>(cut(from + n))] - before[static_cast<std::size_t>(cut(from))];
    }
  }
}

/// Neither end of the ranges ever falls from one step to the next.
void window_charges::charge_other_engine(std::size_t from) {
  const auto steps = static_cast<std::int64_t>(time_.starts.size());
  if (steps == 0) {
    return;
  }
  const auto range = [&](std::int64_t i) {
    const std::int64_t lap = (i + 8 * steps) / steps - 8;
    const slot_range r = time_.starts[static_cast<std::size_t>(i - lap * steps)];
    return slot_range{r.first + lap * time_.sub_slots, r.last + lap * time_.sub_slots};
  };
  std::int64_t next = -3 * steps;
  while (range(next).first < cuts_[from]) {
    ++next;
  }
  double sum = 0.0;
  for (std::size_t n = 1; n <= cuts_.size(); ++n) {
    for (; range(next).last < cut(from + n); ++next) {
      sum += trace_.steps[time_.floating_steps[static_cast<std::size_t>((next + 8 * steps) % steps)]].seconds;
    }
    raise(from, n, sum, resource::cpu, false);
  }
}

void window_charges::charge_h2d(std::size_t from) {
  const std::int64_t i = cuts_[from];
  double beyond = enter(i) - static_cast<double>(machine_.device_capacity);
  double forced = 0.0;
  upwards<upper_need> next(demands_.upper_needs, &upper_need::at, i, time_.sub_slots);
  for (std::size_t n = 1; n <= cuts_.size(); ++n) {
    for (; next.is_at_most(cut(from + n)); next.advance()) {
      const upper_need& need = next.entry();
      const bool was_inside = need.before + next.lap() >= i;
      beyond += need.stale || !was_inside ? items_.bytes[need.group] : 0.0;
      forced += need.stale && (was_inside || need.changed + next.lap() >= i) ? items_.bytes[need.group] : 0.0;
    }
    raise(from, n, std::max(beyond, forced) / machine_.h2d_rate + shut_seconds(from, n), resource::h2d,
          beyond > forced);
  }
}

void window_charges::charge_d2h(std::size_t to) {
  const std::int64_t k = cuts_[to];
  double beyond = enter(k) - static_cast<double>(machine_.device_capacity);
  double forced = 0.0;
  downwards<upper_version> next(demands_.upper_versions, &upper_version::at, k, time_.sub_slots);
  for (std::size_t n = 1; n <= cuts_.size(); ++n) {
    const std::size_t from = (to + cuts_.size() - n) % cuts_.size();
    for (; next.is_at_least(cut(to + cuts_.size() - n) - time_.sub_slots); next.advance()) {
      const upper_version& v = next.entry();
      const bool left = v.leaves && v.left_by + next.lap() < k;
      const bool later = seen_[v.group] != round_ && (v.leaves || v.used_last + next.lap() > k);
      beyond += left || later ? items_.bytes[v.group] : 0.0;
      forced += left ? items_.bytes[v.group] : 0.0;
    }
    raise(from, n, std::max(beyond, forced) / machine_.d2h_rate + shut_seconds(from, n), resource::d2h,
          beyond > forced);
  }
}

void window_charges::find_reads(std::size_t from) {
  const std::int64_t i = cuts_[from];
  double beyond =
      enter(i) - static_cast<double>(machine_.device_capacity) - static_cast<double>(machine_.host_capacity);
  upwards<memory_need> next(demands_.memory_needs, &memory_need::at, i, time_.sub_slots);
  for (std::size_t n = 1; n <= cuts_.size(); ++n) {
    for (; next.is_at_most(cut(from + n)); next.advance()) {
      const memory_need& need = next.entry();
      if (need.from + next.lap() >= i && need.created + next.lap() < i && seen_[need.group] != round_) {
        seen_[need.group] = round_;
        beyond += items_.bytes[need.group];
      }
    }
    at(from, n).read = beyond;
  }
}

void window_charges::find_writes(std::size_t to) {
  const std::int64_t k = cuts_[to];
  double beyond =
      enter(k) - static_cast<double>(machine_.device_capacity) - static_cast<double>(machine_.host_capacity);
  downwards<memory_change> next(demands_.memory_changes, &memory_change::from, k, time_.sub_slots);
  for (std::size_t n = 1; n <= cuts_.size(); ++n) {
    const std::size_t from = (to + cuts_.size() - n) % cuts_.size();
    for (; next.is_at_least(cut(to + cuts_.size() - n) - time_.sub_slots); next.advance()) {
      const memory_change& change = next.entry();
      if (change.done + next.lap() < k && seen_[change.group] != round_ && is_needed(change.group, k)) {
        seen_[change.group] = round_;
        beyond += items_.bytes[change.group];
      }
    }
    at(from, n).written = beyond;
  }
}

bool window_charges::is_needed(item_index group, std::int64_t boundary) const {
  const std::vector<slot_range>& all = demands_.needed[group];
  const auto r = std::lower_bound(all.begin(), all.end(), boundary,
                                  [](const slot_range& a, std::int64_t at) { return a.last < at; });
  return r != all.end() ? r->first <= boundary : !all.empty() && all.front().first + time_.sub_slots <= boundary;
}

void window_charges::charge_storage() {
  for (std::size_t from = 0; from < cuts_.size(); ++from) {
    for (std::size_t n = 1; n <= cuts_.size(); ++n) {
      charge& c = at(from, n);
      c.read = std::max(c.read, 0.0);
      c.written = std::max(c.written, 0.0);
      if (c.read > 0.0 || c.written > 0.0) {
        const storage_prices p = best_storage_prices(machine_, c.read, c.written);
        raise(from, n, p.read * c.read + p.write * c.written, resource::storage, true);
      }
    }
  }
}

void window_charges::add_prices(std::size_t from, std::size_t count, certificate& c) const {
  const charge& w = at(from, count);
  const auto n = static_cast<std::size_t>(time_.sub_slots);
  const auto first = static_cast<std::size_t>(cut(from));
  const auto end = static_cast<std::size_t>(cut(from + count));
  const storage_prices per_byte =
      w.what == resource::storage ? best_storage_prices(machine_, w.read, w.written) : storage_prices{};
  for (std::size_t k = first; k < end; ++k) {
    c.cpu[k % n] += w.what == resource::cpu ? 1.0 : 0.0;
    const bool open = k % 2 == 1 || !is_shut(k % n / 2);
    c.h2d[k % n] += w.what == resource::h2d && open ? 1.0 : 0.0;
    c.d2h[k % n] += w.what == resource::d2h && open ? 1.0 : 0.0;
    for (std::size_t p = 0; p < machine_.storage.size() && w.what == resource::storage; ++p) {
      c.storage_read[p][k % n] += per_byte.read > 0.0 ? per_byte.read * machine_.storage[p].read_rate : 0.0;
      c.storage_write[p][k % n] += per_byte.write > 0.0 ? per_byte.write * machine_.storage[p].write_rate : 0.0;
    }
  }
  if (w.what == resource::h2d || w.what == resource::d2h) {
    const bool up = w.what == resource::h2d;
    c.device[(up ? first : end) % n] += w.capacity ? 1.0 / (up ? machine_.h2d_rate : machine_.d2h_rate) : 0.0;
  }
  if (w.what == resource::storage) {
    for (std::vector<double>* tier : {&c.device, &c.host}) {
      (*tier)[first % n] += per_byte.read;
      (*tier)[end % n] += per_byte.write;
    }
  }
}

}  // namespace forebay::plan::detail
