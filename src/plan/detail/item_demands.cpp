#include "plan/detail/item_demands.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "plan/detail/range_maximum.hpp"

namespace forebay::plan::detail {
namespace {

constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min() / 4;

/// An access by either engine, in listed order.
struct placed_access {
  bool fixed = false;
  std::int64_t first = 0;  ///< sub-slots where it may begin
  std::int64_t last = 0;
  std::int64_t listed = 0;
  uses how = uses::none;
};

std::vector<placed_access> in_listed_order(const item_story& item) {
  std::vector<placed_access> all;
  for (const fixed_access& a : item.fixed) {
    all.push_back({true, 2 * a.number, 2 * a.number, 2 * a.number, a.how});
  }
  for (const floating_access& a : item.floating) {
    all.push_back({false, a.when.first, a.when.last, a.listed, a.how});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const placed_access& a, const placed_access& b) { return a.listed < b.listed; });
  return all;
}

/// One item's accesses, and those of the iterations around.
class demand_finder {
 public:
  demand_finder(item_demands& out, const alike_items& items, item_index group, const range_maximum& working_sets,
                std::int64_t sub_slots)
      : out_(out),
        group_(group),
        shut_by_(items.shut_by[group]),
        working_sets_(working_sets),
        all_(in_listed_order(*items.stories[group])),
        count_(static_cast<std::int64_t>(all_.size())),
        sub_slots_(sub_slots) {}

  void find() {
    std::int64_t created = long_ago;
    for (std::int64_t i = -count_; i < count_; ++i) {
      const placed_access a = at(i);
      if (i >= 0) {
        add_memory(a, at(i - 1), created);
        if (a.fixed && needs_contents(a.how)) {
          add_upper_need(i);
        }
        if (a.fixed && is_exclusive(a.how) && !has(a.how, uses::free)) {
          add_upper_version(i);
        }
      }
      created = needs_contents(a.how) ? created : a.last;
    }
    std::vector<slot_range>& needed = out_.needed[group_];
    std::sort(needed.begin(), needed.end(), [](slot_range a, slot_range b) { return a.last < b.last; });
  }

 private:
  [[nodiscard]] placed_access at(std::int64_t i) const {
    const std::int64_t lap = i < 0 ? -1 : i / count_;
    placed_access a = all_[static_cast<std::size_t>(i - lap * count_)];
    a.first += lap * sub_slots_;
    a.last += lap * sub_slots_;
    return a;
  }

  /// How far back a position is to be taken to be in the first iteration.
  [[nodiscard]] std::int64_t shift(std::int64_t position) const {
    return (position / sub_slots_ - (position % sub_slots_ < 0 ? 1 : 0)) * sub_slots_;
  }

  void add_memory(const placed_access& a, const placed_access& before, std::int64_t created) {
    if (needs_contents(a.how)) {
      const std::int64_t started = a.fixed ? a.last : a.last + 1;
      const std::int64_t back = shift(started);
      out_.memory_needs.push_back({group_, a.first - back, started - back, created - back});
      const std::int64_t last = !a.fixed && has(a.how, uses::free) ? a.first : a.last;
      out_.needed[group_].push_back({before.last + (before.fixed ? 1 : 0) - shift(last), last - shift(last)});
    }
    if (is_exclusive(a.how) && !has(a.how, uses::free)) {
      const std::int64_t done = a.last + (a.fixed ? 1 : 0);
      const std::int64_t first = a.first + (a.fixed ? 1 : 0);
      out_.memory_changes.push_back({group_, first - shift(first), done - shift(first)});
    }
  }

  void add_upper_need(std::int64_t i) {
    upper_need need{group_, at(i).first, 0, false, 0};
    std::int64_t before = i - 1;
    for (; !at(before).fixed; --before) {
      if (!need.stale && is_exclusive(at(before).how)) {
        need.stale = true;
        need.changed = at(before).first;
      }
    }
    need.before = at(before).first + 1;
    const std::optional<std::int64_t> shut = last_shut(at(before).first, need.at);
    if (shut.has_value()) {
      need.changed = need.stale ? std::max(need.changed, 2 * *shut + 1) : 2 * *shut + 1;
      need.stale = true;
    }
    out_.upper_needs.push_back(need);
  }

  void add_upper_version(std::int64_t i) {
    upper_version v{group_, at(i).first + 1, false, 0, at(i).first};
    const auto leave = [&](std::int64_t by) {
      v.left_by = v.leaves ? std::min(v.left_by, by) : by;
      v.leaves = true;
    };
    std::int64_t used = at(i).first;
    for (std::int64_t next = i + 1; next <= i + count_; ++next) {
      const placed_access a = at(next);
      if (needs_contents(a.how)) {
        const std::optional<std::int64_t> shut = first_shut(used, a.last);
        if (shut.has_value()) {
          leave(2 * *shut - 1);
        }
        if (!a.fixed) {
          leave(a.last);
        }
      }
      if (a.fixed) {
        used = a.first;
        v.used_last = needs_contents(a.how) ? used : v.used_last;
      }
      if (is_exclusive(a.how)) {
        break;
      }
    }
    out_.upper_versions.push_back(v);
  }

  /// The last and the first step of the clock that leave no room for the item, between the start of one and a sub-slot.
  [[nodiscard]] std::optional<std::int64_t> last_shut(std::int64_t after, std::int64_t before) const {
    return shut_by_.has_value() ? working_sets_.last_reaching(*shut_by_, after / 2 + 1, (before + 1) / 2 - 1)
                                : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> first_shut(std::int64_t after, std::int64_t before) const {
    return shut_by_.has_value() ? working_sets_.first_reaching(*shut_by_, after / 2 + 1, (before + 1) / 2 - 1)
                                : std::nullopt;
  }

  item_demands& out_;
  item_index group_;
  std::optional<byte_count> shut_by_;
  const range_maximum& working_sets_;
  std::vector<placed_access> all_;
  std::int64_t count_;
  std::int64_t sub_slots_;
};

}  // namespace

item_demands demands_of(const alike_items& items, const timeline& time) {
  item_demands all;
  const range_maximum working_sets(time.working_set);
  all.needed.resize(items.stories.size());
  for (std::size_t g = 0; g < items.stories.size(); ++g) {
    if (!items.stories[g]->fixed.empty() || !items.stories[g]->floating.empty()) {
      demand_finder(all, items, static_cast<item_index>(g), working_sets, time.sub_slots).find();
    }
  }
  const auto by_position = [](auto& list, auto position) {
    std::sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return a.*position < b.*position; });
  };
  by_position(all.upper_needs, &upper_need::at);
  by_position(all.upper_versions, &upper_version::at);
  by_position(all.memory_needs, &memory_need::at);
  by_position(all.memory_changes, &memory_change::from);
  return all;
}

}  // namespace forebay::plan::detail
