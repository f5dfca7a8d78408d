#include "plan/detail/item_path.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace forebay::plan::detail {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t in_device = 1;
constexpr std::size_t in_host = 2;
constexpr std::size_t in_storage = 4;
constexpr std::size_t device_host = in_device | in_host;
constexpr std::size_t device_storage = in_device | in_storage;
constexpr std::size_t host_storage = in_host | in_storage;
constexpr std::size_t everywhere = in_device | in_host | in_storage;

/// Beyond this many floating accesses those that only read are left out, which can only make the path cheaper.
constexpr std::size_t most_floating = 64;
/// Beyond this many overlapping ones at the anchor the path is not worth its cost.
constexpr std::int64_t most_overlapping = 16;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t floored_quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

template <typename Accesses>
bool never_exclusive(const Accesses& all) {
  return std::none_of(all.begin(), all.end(), [](const auto& a) { return is_exclusive(a.how); });
}

}  // namespace

item_path::item_path(const timeline& time, const std::vector<price_run>& runs)
    : time_(time),
      runs_(runs),
      own_(time.clock == place::device ? in_device : in_host),
      other_(time.clock == place::device ? in_host : in_device),
      working_sets_(time.working_set) {}

double item_path::cheapest(const item_story& item, std::optional<byte_count> room) {
  item_ = item;
  if (item_.floating.size() > most_floating) {
    std::erase_if(item_.floating, [](const floating_access& a) { return !is_exclusive(a.how); });
  }
  if ((item_.fixed.empty() && item_.floating.empty()) || item_.floating.size() > 16 * most_floating) {
    return 0.0;
  }
  return cheapest_closed_path(room);
}

double item_path::cheapest_closed_path(std::optional<byte_count> room) {
  choose_anchor();
  const std::int64_t behind = first_floating(anchor_, &slot_range::last);
  const std::int64_t ahead = first_floating(anchor_, &slot_range::first);
  if (ahead - behind > most_overlapping) {
    return 0.0;
  }
  lay_out(room);
  longest_sum_ = std::max(longest_sum_, 4 * (regions_.size() + item_.floating.size()));
  double best = infinite;
  for (const std::size_t set : sets_at_anchor()) {
    for (std::int64_t p = behind; p <= ahead; ++p) {
      best = std::min(best, closed_path(p, set));
    }
  }
  return best < infinite ? best : 0.0;  // no path at all: the trace can't run, and claiming nothing is right
}

/// Where there are few ways to begin: at an exclusive access best, since then there is one.
void item_path::choose_anchor() {
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

/// The floating access of any iteration: index i + n times their number is the i-th one, n iterations on.
floating_access item_path::floating(std::int64_t i) const {
  const auto count = static_cast<std::int64_t>(item_.floating.size());
  const std::int64_t iteration = floored_quotient(i, count);
  floating_access a = item_.floating[index(i - iteration * count)];
  a.when.first += iteration * time_.sub_slots;
  a.when.last += iteration * time_.sub_slots;
  return a;
}

/// The index of the first one whose range has that edge at `at` or later. Both edges never fall from one to the next.
std::int64_t item_path::first_floating(std::int64_t at, std::int64_t slot_range::*edge) const {
  const auto count = static_cast<std::int64_t>(item_.floating.size());
  std::int64_t low = -4 * count;  // a range is at most two iterations away from where its step is listed
  std::int64_t high = 4 * count;
  while (low < high) {
    const std::int64_t middle = floored_quotient(low + high, 2);
    (floating(middle).when.*edge >= at ? high : low) = floating(middle).when.*edge >= at ? middle : middle + 1;
  }
  return low;
}

void item_path::lay_out(std::optional<byte_count> room) {
  const std::int64_t n = time_.sub_slots;
  const auto unrolled = [&](std::size_t i, std::size_t size, std::int64_t at) {
    return at + (i >= size ? n : 0) + (i >= 2 * size ? n : 0);
  };
  const auto run_from = [&](std::size_t i) { return unrolled(i, runs_.size(), runs_[i % runs_.size()].first); };
  std::size_t next_run = 0;
  while (run_from(next_run) < anchor_) {
    ++next_run;
  }
  const std::vector<fixed_access>& fixed = item_.fixed;
  std::size_t next_fixed = at_ == nullptr ? 0 : static_cast<std::size_t>(at_ - fixed.data());
  while (!fixed.empty() && unrolled(next_fixed, fixed.size(), 2 * fixed[next_fixed % fixed.size()].number) < anchor_) {
    ++next_fixed;
  }
  const fixed_access* running = nullptr;
  regions_.clear();
  for (std::int64_t at = anchor_; at < anchor_ + n;) {
    region r;
    r.first = at;
    r.pays = run_from(next_run) == at;
    next_run += r.pays ? 1 : 0;
    r.run = &runs_[(next_run + runs_.size() - 1) % runs_.size()];
    r.ended = std::exchange(running, nullptr);
    r.end = std::min(run_from(next_run), anchor_ + n);
    if (!fixed.empty()) {
      const fixed_access& a = fixed[next_fixed % fixed.size()];
      const std::int64_t start = unrolled(next_fixed, fixed.size(), 2 * a.number);
      if (start == at) {
        r.begins = running = &a;
        r.end = at + 1;
        ++next_fixed;
      } else {
        r.end = std::min(r.end, start);
      }
    }
    if (room.has_value() && r.begins == nullptr) {
      mark_shut(r, *room);
    }
    at = r.end;
    regions_.push_back(r);
  }
}

void item_path::mark_shut(region& r, byte_count room) const {
  const auto shut = [&](std::int64_t first, std::int64_t last) {  // sub-slots, both included; steps have even numbers
    const std::int64_t from = (first + 1) / 2;
    const std::int64_t to = last / 2;
    return from <= to && working_sets_.greatest(from, to) > room;
  };
  r.shut_first = shut(r.first, r.first);
  r.shut_later = shut(r.first + 1, r.end - 1);
  r.shut_last = shut(r.end - 1, r.end - 1);
}

std::vector<std::size_t> item_path::sets_at_anchor() const {
  if (at_ != nullptr && is_exclusive(at_->how)) {
    return {own_};
  }
  const bool stored = runs_.front().storage_read < infinite;
  // Contents that never change stay in storage for good once they have been written there, at no cost.
  const bool always_stored = stored && never_exclusive(item_.fixed) && never_exclusive(item_.floating);
  const bool may_be_dead = at_ == nullptr && !never_exclusive(item_.floating);
  std::vector<std::size_t> sets;
  for (std::size_t set = may_be_dead ? 0 : 1; set < 8; ++set) {
    const bool in_reach = stored || (set & in_storage) == 0;
    const bool read = at_ == nullptr || (set & own_) != 0;
    if (in_reach && read && (!always_stored || (set & in_storage) != 0)) {
      sets.push_back(set);
    }
  }
  return sets;
}

double item_path::closed_path(std::int64_t behind, std::size_t set) {
  behind_ = behind;
  least_ = 0;
  by_progress_.assign(1, {});
  by_progress_[0].fill(infinite);
  by_progress_[0][set] = 0.0;
  for (const region& r : regions_) {
    cross(r);
  }
  if (by_progress_.size() != item_.floating.size() + 1) {
    return infinite;
  }
  if (at_ != nullptr) {
    use(at_->how, own_, by_progress_.back());
  }
  return by_progress_.back()[set];
}

void item_path::cross(const region& r) {
  for (std::size_t p = least_; p < by_progress_.size(); ++p) {
    enter(r, by_progress_[p]);
  }
  if (r.begins != nullptr && is_exclusive(r.begins->how)) {
    return;
  }
  const std::size_t all = item_.floating.size();
  for (std::size_t p = least_; p < by_progress_.size(); ++p) {
    stay(r, by_progress_[p]);
    if (p == all) {
      break;
    }
    const floating_access next = floating(behind_ + static_cast<std::int64_t>(p));
    if (next.when.first < r.end) {
      costs after = by_progress_[p];
      use(next.how, other_, after);
      if (has(next.how, uses::free)) {
        std::swap(after[0], after[other_]);
      }
      if (p + 1 == by_progress_.size()) {
        by_progress_.push_back(after);
      }
      std::transform(after.begin(), after.end(), by_progress_[p + 1].begin(), by_progress_[p + 1].begin(),
                     [](double a, double b) { return std::min(a, b); });
    }
    least_ += least_ == p && next.when.last < r.end ? 1 : 0;
  }
}

void item_path::enter(const region& r, costs& c) const {
  if (r.begins != nullptr) {
    use(r.begins->how, own_, c);
  } else if (r.ended != nullptr) {
    for (std::size_t set = 0; set < 8; ++set) {
      c[set] = (set & own_) != 0 ? c[set] : infinite;  // it was there to the end
    }
  }
  if (r.pays) {
    for (std::size_t set = 1; set < 8; ++set) {
      c[set] += ((set & in_device) != 0 ? r.run->device : 0.0) + ((set & in_host) != 0 ? r.run->host : 0.0);
    }
  }
  if (r.begins == nullptr && r.ended != nullptr && has(r.ended->how, uses::free)) {
    std::swap(c[0], c[own_]);
  }
}

void item_path::stay(const region& r, costs& c) const {
  const auto leave = [&] {  // copies are dropped; those elsewhere stay
    for (std::size_t set = 0; set < 8; ++set) {
      c[set & ~own_] = std::min(c[set & ~own_], c[set]);
      c[set] = (set & own_) != 0 ? infinite : c[set];
    }
  };
  if (r.shut_first) {
    leave();
  }
  move_copies(*r.run, c);
  if (r.shut_later || r.shut_last) {
    leave();
  }
  if (r.shut_later && !r.shut_last) {
    move_copies(*r.run, c);
  }
}

/// First copies are added, smaller sets before larger ones, then any are dropped: another order gains nothing where
/// residency costs nothing.
void item_path::move_copies(const price_run& run, costs& c) {
  c[device_host] = std::min({c[device_host], c[in_device] + run.d2h, c[in_host] + run.h2d});
  c[host_storage] = std::min({c[host_storage], c[in_host] + run.storage_write, c[in_storage] + run.storage_read});
  c[everywhere] = std::min({c[everywhere], c[device_host] + run.storage_write, c[host_storage] + run.h2d,
                            c[device_storage] + std::min(run.d2h, run.storage_read)});
  for (const std::size_t tier : {in_device, in_host, in_storage}) {
    for (std::size_t set = 0; set < 8; ++set) {
      if ((set & tier) == 0) {
        c[set] = std::min(c[set], c[set | tier]);
      }
    }
  }
}

void item_path::use(uses how, std::size_t tier, costs& c) {
  double least = infinite;
  for (std::size_t set = 0; set < 8; ++set) {
    if ((set & tier) == 0 && needs_contents(how)) {
      c[set] = infinite;
    }
    least = std::min(least, c[set]);
  }
  if (is_exclusive(how)) {
    c.fill(infinite);
    c[tier] = least;
  }
}

}  // namespace forebay::plan::detail
