#include "plan/detail/item_layout.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace forebay::plan::detail {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t floored_quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// A position in the iteration that the i-th entry of a list of so many is in, when the list is repeated.
std::int64_t unrolled(std::int64_t position, std::size_t i, std::size_t size, std::int64_t sub_slots) {
  return position + static_cast<std::int64_t>(i / size) * sub_slots;
}

}  // namespace

item_layout::item_layout(const timeline& time, const std::vector<price_run>& runs)
    : time_(time), runs_(runs), working_sets_(time.working_set) {}

void item_layout::set(item_story item, std::optional<byte_count> shut_by) {
  item_ = std::move(item);
  choose_anchor();
  lay_out(shut_by);
}

/// Where there are few ways to begin: at an exclusive access best, since then there is one.
void item_layout::choose_anchor() {
  at_ = item_.fixed.empty() ? nullptr : item_.fixed.data();
  for (auto a = item_.fixed.rbegin(); a != item_.fixed.rend(); ++a) {
    at_ = is_exclusive(a->how) ? &*a : at_;
  }
  if (at_ != nullptr) {
    anchor_ = 2 * at_->number;
    return;
  }
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const floating_access& a : item_.floating) {
    const std::int64_t at = a.when.first - floored_quotient(a.when.first, time_.sub_slots) * time_.sub_slots;
    const std::int64_t overlapping = first_floating(at, &slot_range::first) - first_floating(at, &slot_range::last);
    if (overlapping < fewest) {
      fewest = overlapping;
      anchor_ = at;
    }
  }
}

floating_access item_layout::floating(std::int64_t i) const {
  const auto count = static_cast<std::int64_t>(item_.floating.size());
  const std::int64_t iteration = floored_quotient(i, count);
  floating_access a = item_.floating[index(i - iteration * count)];
  a.when.first += iteration * time_.sub_slots;
  a.when.last += iteration * time_.sub_slots;
  return a;
}

std::int64_t item_layout::first_floating(std::int64_t at, std::int64_t slot_range::*edge) const {
  const auto count = static_cast<std::int64_t>(item_.floating.size());
  std::int64_t low = -4 * count;  // a range is at most two iterations away from where its step is listed
  std::int64_t high = 4 * count;
  while (low < high) {
    const std::int64_t middle = floored_quotient(low + high, 2);
    (floating(middle).when.*edge >= at ? high : low) = floating(middle).when.*edge >= at ? middle : middle + 1;
  }
  return low;
}

std::int64_t item_layout::run_start(std::size_t i) const {
  return unrolled(runs_[i % runs_.size()].first, i, runs_.size(), time_.sub_slots);
}

/// Never for an item that no step of the clock accesses.
std::int64_t item_layout::step_start(std::size_t i) const {
  const std::size_t size = item_.fixed.size();
  return size == 0 ? std::numeric_limits<std::int64_t>::max()
                   : unrolled(2 * item_.fixed[i % size].number, i, size, time_.sub_slots);
}

void item_layout::lay_out(std::optional<byte_count> shut_by) {
  std::size_t next_run = 0;
  while (run_start(next_run) < anchor_) {
    ++next_run;
  }
  std::size_t next_step = 0;
  while (step_start(next_step) < anchor_) {
    ++next_step;
  }
  const std::int64_t end = anchor_ + time_.sub_slots;
  const fixed_access* running = nullptr;
  regions_.clear();
  for (std::int64_t at = anchor_; at < end; at = regions_.back().end) {
    item_region r;
    r.first = at;
    r.pays = run_start(next_run) == at;
    next_run += r.pays ? 1 : 0;
    r.run = &runs_[(next_run + runs_.size() - 1) % runs_.size()];
    r.ended = std::exchange(running, nullptr);
    if (step_start(next_step) == at) {
      r.begins = running = &item_.fixed[next_step % item_.fixed.size()];
      ++next_step;
      r.end = at + 1;
    } else {
      r.end = std::min({run_start(next_run), step_start(next_step), end});
      if (shut_by.has_value()) {
        mark_shut(r, *shut_by);
      }
    }
    regions_.push_back(r);
  }
}

void item_layout::mark_shut(item_region& r, byte_count shut_by) const {
  const auto shut = [&](std::int64_t first, std::int64_t last) {  // sub-slots, both included; steps have even numbers
    const std::int64_t from = (first + 1) / 2;
    const std::int64_t to = last / 2;
    return from <= to && working_sets_.greatest(from, to) >= shut_by;
  };
  r.shut_first = shut(r.first, r.first);
  r.shut_later = shut(r.first + 1, r.end - 1);
  r.shut_last = shut(r.end - 1, r.end - 1);
}

}  // namespace forebay::plan::detail
