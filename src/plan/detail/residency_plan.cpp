#include "plan/detail/residency_plan.hpp"

#include <algorithm>
#include <array>

#include <forebay/plan/minimum_capacity.hpp>

#include "plan/detail/parking.hpp"

namespace forebay::plan::detail {

access_lists::access_lists(const trace& t) : first_of_item(t.item_bytes.size() + 1), starts{0.0} {
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    first_of_step.push_back(static_cast<std::uint32_t>(all.size()));
    for (const item_access& a : t.steps[s].accesses) {
      all.push_back({s, a.item, a.how, t.steps[s].where});
      ++first_of_item[a.item + 1];
    }
    starts.push_back(starts.back() + t.steps[s].seconds);
  }
  first_of_step.push_back(static_cast<std::uint32_t>(all.size()));
  for (std::size_t i = 1; i < first_of_item.size(); ++i) {
    first_of_item[i] += first_of_item[i - 1];
  }
  of_item.resize(all.size());
  std::vector<std::uint32_t> next(first_of_item.begin(), first_of_item.end() - 1);
  for (std::uint32_t a = 0; a < all.size(); ++a) {
    of_item[next[all[a].item]++] = a;
  }
  next_access.resize(all.size());
  for (std::size_t i = 0; i + 1 < first_of_item.size(); ++i) {
    for (std::uint32_t k = first_of_item[i]; k < first_of_item[i + 1]; ++k) {
      next_access[of_item[k]] = of_item[k + 1 < first_of_item[i + 1] ? k + 1 : first_of_item[i]];
    }
  }
}

namespace {

/// Seconds per byte.
struct link_prices {
  double to_device = 0.0;
  double from_device = 0.0;
  double from_storage = 0.0;
  double to_storage = 0.0;
};

link_prices prices_of(const machine& m, const plan_choices& c) {
  const auto of = [&](link l) { return c.price[static_cast<std::size_t>(l)]; };
  link_prices p;
  p.from_storage = of(link::storage_read) / storage_read_rate(m);
  p.to_storage = of(link::storage_write) / storage_write_rate(m);
  p.to_device = of(link::h2d) / m.h2d_rate + c.price.back() * p.from_storage;
  p.from_device = of(link::d2h) / m.d2h_rate + c.price.back() * p.to_storage;
  return p;
}

bool ends_contents(const placed_access& a) { return has(a.how, uses::free); }

/// The accesses of an item, cyclically.
class item_walk {
 public:
  item_walk(const access_lists& lists, item_index item)
      : lists_(lists), first_(lists.first_of_item[item]), count_(lists.first_of_item[item + 1] - first_) {}
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] bool persists() const {
    for (std::uint32_t k = 0; k < count_; ++k) {
      if (has(at(k).how, uses::create)) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::uint32_t index(std::uint32_t k) const { return lists_.of_item[first_ + k % count_]; }
  [[nodiscard]] const placed_access& at(std::uint32_t k) const { return lists_.all[index(k)]; }
  /// The step, counted on through later iterations.
  [[nodiscard]] std::uint32_t position(std::uint32_t k) const {
    const auto steps = static_cast<std::uint32_t>(lists_.starts.size() - 1);
    return at(k).step + (k / count_) * steps;
  }

 private:
  const access_lists& lists_;
  std::uint32_t first_;
  std::uint32_t count_;
};

/// The gap after the device access k of an item, as far as it does not depend on choices.
gap device_gap(const item_walk& walk, item_index item, std::uint32_t k, const link_prices& price, bool dirty) {
  gap g;
  g.item = item;
  g.from = walk.position(k);
  g.earliest = g.from + 1;
  bool current = !ends_contents(walk.at(k));
  bool host_needs = false;
  std::uint32_t next = k + 1;
  for (; walk.at(next).where == place::host; ++next) {
    const placed_access& a = walk.at(next);
    host_needs = host_needs || needs_contents(a.how);
    if (modifies(a.how) || ends_contents(a)) {
      current = false;
      g.earliest = walk.position(next) + 1;
    }
  }
  g.to = walk.position(next);
  g.needed = needs_contents(walk.at(next).how);
  g.may_keep = current && g.needed;
  const bool goes_up_anyway = host_needs;
  g.seconds_per_byte = price.to_device + (dirty && !goes_up_anyway ? price.from_device : 0.0);
  return g;
}

std::vector<gap> device_gaps(const trace& t, const link_prices& price, const access_lists& lists) {
  std::vector<gap> gaps(lists.all.size());
  for (item_index item = 0; item < t.item_bytes.size(); ++item) {
    const item_walk walk(lists, item);
    const bool persists = walk.persists();
    bool dirty = false;
    for (std::uint32_t k = 0; k < 2 * walk.count(); ++k) {  // the second round knows what the first leaves behind
      if (walk.at(k).where == place::host) {
        dirty = false;
        continue;
      }
      dirty = (dirty || modifies(walk.at(k).how)) && !ends_contents(walk.at(k));
      if (k < walk.count() || gaps[walk.index(k)].to == 0) {
        gaps[walk.index(k)] = device_gap(walk, item, k, price, dirty);
        gaps[walk.index(k)].persists = persists;
      } else {
        gaps[walk.index(k)].seconds_per_byte = device_gap(walk, item, k, price, dirty).seconds_per_byte;
      }
    }
  }
  return gaps;
}

std::vector<byte_count> working_sets(const trace& t, place where) {
  std::vector<byte_count> bytes(t.steps.size(), 0);
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    if (t.steps[s].where == where) {
      bytes[s] = working_set(t, static_cast<std::uint32_t>(s));
    }
  }
  return bytes;
}

/// What happens to an item's host copy, in the order of time.
struct host_event {
  std::uint32_t position = 0;  // host_position
  bool needs = false;
  bool changes = false;  // the copy is newer than the one in storage
  bool ends = false;     // the item, or the copy is stale before any other event
  std::uint32_t access = 0;
};

/// Events of one item, in the order of position within the iteration.
std::vector<host_event> host_events(const item_walk& walk, const std::vector<gap>& device, std::uint32_t steps) {
  std::vector<host_event> events;
  bool dirty = false;  // on the device
  for (std::uint32_t k = 0; k < 2 * walk.count(); ++k) {
    const placed_access& a = walk.at(k);
    const bool second = k >= walk.count();
    if (a.where == place::host) {
      dirty = false;
      if (second) {
        events.push_back({host_position(a.step, host_moment::step), needs_contents(a.how), modifies(a.how),
                          ends_contents(a), walk.index(k)});
      }
      continue;
    }
    const gap& g = device[walk.index(k)];
    dirty = (dirty || modifies(a.how)) && !ends_contents(a);
    const bool host_reads = walk.at(k + 1).where == place::host && needs_contents(walk.at(k + 1).how);
    if (dirty && (host_reads || (!g.kept && !ends_contents(a)))) {
      dirty = false;
      if (second) {
        events.push_back({host_position(a.step, host_moment::arrival), false, true, false, walk.index(k)});
      }
    }
    if (!g.kept && g.fetch != not_fetched && second) {
      events.push_back({host_position(g.fetch % steps, host_moment::source), true, false, false, walk.index(k)});
    }
  }
  std::sort(events.begin(), events.end(),
            [](const host_event& a, const host_event& b) { return a.position < b.position; });
  return events;
}

/// Whether the device changes or ends the item strictly between two host positions.
bool stale_between(const item_walk& walk, std::uint32_t from, std::uint32_t to, std::uint32_t steps) {
  for (std::uint32_t k = 0; k < 2 * walk.count(); ++k) {
    const placed_access& a = walk.at(k);
    const std::uint32_t at = host_position(a.step + (k / walk.count()) * steps, host_moment::step);
    if (at > from && at < to && (modifies(a.how) || ends_contents(a)) && a.where == place::device) {
      return true;
    }
  }
  return false;
}

void add_host_gaps(const item_walk& walk, item_index item, const std::vector<host_event>& events,
                   const link_prices& price, std::uint32_t steps, const std::vector<double>& bias,
                   std::vector<gap>& gaps) {
  const bool persists = walk.persists();
  bool dirty = std::any_of(events.begin(), events.end(), [](const host_event& e) { return e.changes; });
  for (std::size_t e = 0; e < events.size(); ++e) {
    const bool last = e + 1 == events.size();
    const host_event& next = events[last ? 0 : e + 1];
    gap g;
    g.item = item;
    g.persists = persists;
    g.access = events[e].access;
    g.from = events[e].position;
    g.to = next.position + (last ? 3 * steps : 0);
    g.earliest = g.from + 1;
    const bool current = !events[e].ends && !stale_between(walk, g.from, g.to, steps);
    dirty = dirty || events[e].changes;
    g.needed = next.needs && !events[e].ends;
    g.may_keep = current && next.needs;
    g.seconds_per_byte = price.from_storage + (dirty ? price.to_storage : 0.0);
    g.bias = bias.empty() ? 0.0 : bias[bias.size() / 2 + events[e].access];
    gaps.push_back(g);
  }
}

std::vector<double> host_starts(const std::vector<double>& starts) {
  std::vector<double> result;
  for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
    result.insert(result.end(), {starts[s], starts[s], starts[s + 1]});
  }
  result.push_back(starts.back());
  return result;
}

/// Copies in transit pass one at a time where they do not fit together.
std::vector<byte_count> host_working_sets(const trace& t, const machine& m, const std::vector<gap>& gaps) {
  const std::vector<byte_count> steps = working_sets(t, place::host);
  std::vector<byte_count> sum(3 * steps.size(), 0);
  std::vector<byte_count> most(3 * steps.size(), 0);
  for (const gap& g : gaps) {
    if (g.from % 3 != static_cast<std::uint32_t>(host_moment::step)) {
      sum[g.from] += t.item_bytes[g.item];
      most[g.from] = std::max(most[g.from], t.item_bytes[g.item]);
    }
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    sum[host_position(static_cast<std::uint32_t>(s), host_moment::step)] = steps[s];
    for (const host_moment moment : {host_moment::source, host_moment::arrival}) {
      const std::uint32_t p = host_position(static_cast<std::uint32_t>(s), moment);
      sum[p] = std::min(sum[p], std::max(most[p], m.host_capacity));
    }
  }
  return sum;
}

}  // namespace

residency_plan plan_residency(const trace& t, const machine& m, const access_lists& lists,
                              const plan_choices& choices) {
  residency_plan plan;
  const link_prices price = prices_of(m, choices);
  const std::vector<double>& bias = choices.bias;
  plan.device = device_gaps(t, price, lists);
  std::vector<std::uint32_t> real;
  std::vector<gap> chosen;
  for (std::uint32_t a = 0; a < plan.device.size(); ++a) {
    if (lists.all[a].where == place::device) {
      real.push_back(a);
      chosen.push_back(plan.device[a]);
      chosen.back().bias = bias.empty() ? 0.0 : bias[a];
    }
  }
  plan_tier(chosen, t.item_bytes, working_sets(t, place::device), m.device_capacity, choices.clock, choices.device);
  for (std::size_t i = 0; i < real.size(); ++i) {
    plan.device[real[i]] = chosen[i];
  }
  const auto steps = static_cast<std::uint32_t>(t.steps.size());
  for (item_index item = 0; item < t.item_bytes.size(); ++item) {
    plan.first_host_of_item.push_back(static_cast<std::uint32_t>(plan.host.size()));
    const item_walk walk(lists, item);
    add_host_gaps(walk, item, host_events(walk, plan.device, steps), price, steps, bias, plan.host);
  }
  plan.first_host_of_item.push_back(static_cast<std::uint32_t>(plan.host.size()));
  const std::vector<double> host_clock = host_starts(choices.clock);
  plan_tier(plan.host, t.item_bytes, host_working_sets(t, m, plan.host), m.host_capacity, host_clock, choices.host);
  if (choices.parking > 0.0) {
    const auto room = static_cast<byte_count>(choices.parking * static_cast<double>(m.device_capacity));
    park_on_device(t, lists, room, host_clock, choices.host, plan);
  }
  return plan;
}

}  // namespace forebay::plan::detail
