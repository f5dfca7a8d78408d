#include "plan/detail/item_path.hpp"

#include <algorithm>
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

template <typename Accesses>
bool never_exclusive(const Accesses& all) {
  return std::none_of(all.begin(), all.end(), [](const auto& a) { return is_exclusive(a.how); });
}

}  // namespace

item_path::item_path(const timeline& time, const std::vector<price_run>& runs)
    : has_storage_(runs.front().storage_read < infinite),
      own_(time.clock == place::device ? in_device : in_host),
      other_(time.clock == place::device ? in_host : in_device),
      layout_(time, runs) {}

double item_path::cheapest(item_story item, std::optional<byte_count> shut_by) {
  if (item.floating.size() > most_floating) {
    std::erase_if(item.floating, [](const floating_access& a) { return !is_exclusive(a.how); });
  }
  if ((item.fixed.empty() && item.floating.empty()) || item.floating.size() > 16 * most_floating) {
    return 0.0;
  }
  layout_.set(std::move(item), shut_by);
  const std::int64_t behind = layout_.first_floating(layout_.anchor(), &slot_range::last);
  const std::int64_t ahead = layout_.first_floating(layout_.anchor(), &slot_range::first);
  if (ahead - behind > most_overlapping) {
    return 0.0;
  }
  longest_sum_ = std::max(longest_sum_, 4 * (layout_.regions().size() + layout_.item().floating.size()));
  double best = infinite;
  for (const std::size_t set : sets_at_anchor()) {
    for (std::int64_t p = behind; p <= ahead; ++p) {
      best = std::min(best, closed_path(p, set));
    }
  }
  return best < infinite ? best : 0.0;  // no path at all: the trace can't run, and claiming nothing is right
}

std::vector<std::size_t> item_path::sets_at_anchor() const {
  if (layout_.anchor_access() != nullptr && is_exclusive(layout_.anchor_access()->how)) {
    return {own_};
  }
  // Contents that never change stay in storage for good once they have been written there, at no cost.
  const bool always_stored =
      has_storage_ && never_exclusive(layout_.item().fixed) && never_exclusive(layout_.item().floating);
  const bool may_be_dead = layout_.anchor_access() == nullptr && !never_exclusive(layout_.item().floating);
  std::vector<std::size_t> sets;
  for (std::size_t set = may_be_dead ? 0 : 1; set < 8; ++set) {
    const bool in_reach = has_storage_ || (set & in_storage) == 0;
    const bool read = layout_.anchor_access() == nullptr || (set & own_) != 0;
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
  for (const item_region& r : layout_.regions()) {
    cross(r);
  }
  if (by_progress_.size() != layout_.item().floating.size() + 1) {
    return infinite;
  }
  if (layout_.anchor_access() != nullptr) {
    use(layout_.anchor_access()->how, own_, by_progress_.back());
  }
  return by_progress_.back()[set];
}

void item_path::cross(const item_region& r) {
  for (std::size_t p = least_; p < by_progress_.size(); ++p) {
    enter(r, by_progress_[p]);
  }
  if (r.begins != nullptr && is_exclusive(r.begins->how)) {
    return;
  }
  const std::size_t all = layout_.item().floating.size();
  for (std::size_t p = least_; p < by_progress_.size(); ++p) {
    stay(r, by_progress_[p]);
    if (p == all) {
      break;
    }
    const floating_access next = layout_.floating(behind_ + static_cast<std::int64_t>(p));
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

void item_path::enter(const item_region& r, costs& c) const {
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

void item_path::stay(const item_region& r, costs& c) const {
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
