#include "plan/detail/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan::detail {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 4;

void check_trace(const trace& t) {
  std::vector<std::size_t> seen(t.item_bytes.size(), 0);  // the last step that accessed the item, plus one
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    if (!(t.steps[s].seconds >= 0.0) || !std::isfinite(t.steps[s].seconds)) {
      throw usage_error(
          fmt::format("step {} takes {} seconds; it must be a finite time, zero or more", s, t.steps[s].seconds));
    }
    for (const item_access& a : t.steps[s].accesses) {
      if (a.item >= t.item_bytes.size()) {
        throw usage_error(fmt::format("step {} accesses item {}, and there are {}", s, a.item, t.item_bytes.size()));
      }
      if (std::exchange(seen[a.item], s + 1) == s + 1) {
        throw usage_error(fmt::format("step {} accesses item {} twice", s, a.item));
      }
    }
  }
}

/// An access in listed order. A fixed one has its step's number, a floating one that of its step among the others.
struct listed_access {
  bool fixed = false;
  std::int64_t number = 0;
  std::int64_t clock_steps_before = 0;
  uses how = uses::none;
};

std::vector<std::vector<listed_access>> listed_by_item(const trace& t, place clock) {
  std::vector<std::vector<listed_access>> items(t.item_bytes.size());
  std::int64_t fixed = 0;
  std::int64_t floating = 0;
  for (const trace_step& step : t.steps) {
    const bool of_clock = step.where == clock;
    for (const item_access& a : step.accesses) {
      items[a.item].push_back({of_clock, of_clock ? fixed : floating, fixed, a.how});
    }
    (of_clock ? fixed : floating) += 1;
  }
  return items;
}

/// Narrows the ranges of floating steps to what conflicts over this item leave: twice round its accesses, so that the
/// last conflicting one before each, and the first one after it, may be an iteration away.
void apply_conflicts(const std::vector<listed_access>& all, std::int64_t sub_slots, std::vector<slot_range>& starts) {
  const auto count = static_cast<std::int64_t>(all.size());
  std::int64_t any = -never;  // the end of the last fixed access, and of the last exclusive one
  std::int64_t exclusive = -never;
  for (std::int64_t i = -count; i < count; ++i) {
    const listed_access& a = all[static_cast<std::size_t>(i < 0 ? i + count : i)];
    if (a.fixed) {
      any = 2 * a.number + 1 - (i < 0 ? sub_slots : 0);
      exclusive = is_exclusive(a.how) ? any : exclusive;
    } else if (i >= 0) {
      std::int64_t& first = starts[static_cast<std::size_t>(a.number)].first;
      first = std::max(first, is_exclusive(a.how) ? any : exclusive);
    }
  }
  any = exclusive = never;
  for (std::int64_t i = 2 * count - 1; i >= 0; --i) {
    const listed_access& a = all[static_cast<std::size_t>(i % count)];
    if (a.fixed) {
      any = 2 * a.number - 1 + (i >= count ? sub_slots : 0);
      exclusive = is_exclusive(a.how) ? any : exclusive;
    } else if (i < count) {
      std::int64_t& last = starts[static_cast<std::size_t>(a.number)].last;
      last = std::min(last, is_exclusive(a.how) ? any : exclusive);
    }
  }
}

/// The other engine runs its steps in order, those of the iteration before included.
void apply_engine_order(std::int64_t sub_slots, std::vector<slot_range>& starts) {
  for (int lap = 0; lap < 2 && !starts.empty(); ++lap) {
    std::int64_t first = starts.back().first - sub_slots;
    for (slot_range& r : starts) {
      first = r.first = std::max(r.first, first);
    }
    std::int64_t last = starts.front().last + sub_slots;
    for (auto r = starts.rbegin(); r != starts.rend(); ++r) {
      last = r->last = std::min(r->last, last);
    }
  }
}

/// By device step: the number of the first one that may not have ended when it has been granted, which is negative for
/// those of the iteration before (and `-never` where even a whole iteration fits in the tier). Steps that have been
/// granted hold all their items, so no more of them can be under way than fit in the tier together.
std::vector<std::int64_t> first_under_way(const trace& t, const std::vector<std::uint32_t>& clock_steps,
                                          byte_count capacity) {
  const auto count = static_cast<std::int64_t>(clock_steps.size());
  std::vector<std::int64_t> first(clock_steps.size());
  std::vector<std::uint32_t> holders(t.item_bytes.size(), 0);
  byte_count held = 0;
  std::int64_t oldest = -count;
  const auto accesses_of = [&](std::int64_t step) -> const std::vector<item_access>& {
    return t.steps[clock_steps[static_cast<std::size_t>((step + count) % count)]].accesses;
  };
  for (std::int64_t g = -count; g < count; ++g) {
    for (const item_access& a : accesses_of(g)) {
      held += holders[a.item]++ == 0 ? t.item_bytes[a.item] : 0;
    }
    for (; held > capacity && oldest < g; ++oldest) {
      for (const item_access& a : accesses_of(oldest)) {
        held -= --holders[a.item] == 0 ? t.item_bytes[a.item] : 0;
      }
    }
    if (g >= 0) {
      first[static_cast<std::size_t>(g)] = oldest > -count ? oldest : -never;
    }
  }
  return first;
}

/// Narrows the ranges of host steps to what is known of the caller: with a single one, a step that is listed after it
/// starts after its end, and steps listed before it have been granted; at a join all listed before have ended.
void apply_execution(const trace& t, const timeline& l, const execution_model& model, byte_count device_capacity,
                     std::vector<slot_range>& starts) {
  const std::vector<std::int64_t> under_way = first_under_way(t, l.clock_steps, device_capacity);
  std::int64_t clock = 0;   // clock steps listed so far
  std::int64_t joined = 0;  // clock steps before the last join
  std::size_t floating = 0;
  std::vector<std::size_t> open;  // floating steps since the last join
  const auto close = [&] {
    for (const std::size_t h : open) {
      starts[h].last = std::min(starts[h].last, 2 * clock - 1);
    }
    open.clear();
    joined = clock;
  };
  bool joins_iterations = model.iterations_join;
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    const trace_step& step = t.steps[s];
    const bool starts_phase = s == 0 || t.steps[s - 1].phase != step.phase;
    const auto& joining = model.joining_phases;
    const bool joins = starts_phase && std::find(joining.begin(), joining.end(), step.phase) != joining.end();
    joins_iterations = joins_iterations || (s == 0 && joins);
    if (joins) {
      close();
    }
    if (step.where == l.clock) {
      ++clock;
      continue;
    }
    slot_range& r = starts[floating];
    if (joined > 0 || joins_iterations) {
      r.first = std::max(r.first, 2 * joined - 1);
    }
    if (model.single_caller) {
      r.last = std::min(r.last, 2 * clock - 1);
      r.first = clock == 0 ? r.first : std::max(r.first, 2 * under_way[static_cast<std::size_t>(clock - 1)] - 1);
    }
    open.push_back(floating++);
  }
  if (joins_iterations) {
    close();
  }
}

}  // namespace

timeline timeline_of(const trace& t) { return timeline_of(t, {}, 0); }

timeline timeline_of(const trace& t, const execution_model& model, byte_count device_capacity) {
  check_trace(t);
  timeline l;
  l.clock = std::any_of(t.steps.begin(), t.steps.end(), [](const trace_step& s) { return s.where == place::device; })
                ? place::device
                : place::host;
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    if (t.steps[s].where != l.clock) {
      l.floating_steps.push_back(s);
      continue;
    }
    l.clock_steps.push_back(s);
    byte_count needed = workspace_room(t.steps[s]);
    for (const item_access& a : t.steps[s].accesses) {
      needed += t.item_bytes[a.item];
    }
    l.working_set.push_back(needed);
  }
  l.sub_slots = 2 * static_cast<std::int64_t>(l.clock_steps.size());
  l.starts.assign(l.floating_steps.size(), {-never, never});
  const std::vector<std::vector<listed_access>> listed = listed_by_item(t, l.clock);
  for (const std::vector<listed_access>& all : listed) {
    apply_conflicts(all, l.sub_slots, l.starts);
  }
  if (l.clock == place::device) {
    apply_execution(t, l, model, device_capacity, l.starts);
  }
  apply_engine_order(l.sub_slots, l.starts);
  l.tied = !l.starts.empty() && l.starts.front().last < never / 2;
  l.items.resize(listed.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    for (const listed_access& a : listed[i]) {
      if (a.fixed) {
        l.items[i].fixed.push_back({a.number, a.how});
      } else if (l.tied) {
        l.items[i].floating.push_back(
            {l.starts[static_cast<std::size_t>(a.number)], 2 * a.clock_steps_before - 1, a.how});
      }
    }
  }
  if (!l.tied) {
    l.starts.clear();
  }
  return l;
}

}  // namespace forebay::plan::detail
