#include "plan/detail/parking.hpp"

#include <forebay/plan/minimum_capacity.hpp>

#include "plan/detail/occupancy.hpp"

namespace forebay::plan::detail {
namespace {

/// Bytes on the device by step, as planned.
occupancy device_profile(const trace& t, const access_lists& lists, const residency_plan& plan) {
  std::vector<byte_count> base(t.steps.size(), 0);
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    base[s] = t.steps[s].where == place::device ? working_set(t, s) : 0;
  }
  occupancy profile(base);
  for (std::uint32_t a = 0; a < plan.device.size(); ++a) {
    const gap& g = plan.device[a];
    if (lists.all[a].where != place::device) {
      continue;
    }
    if (g.kept) {
      profile.add(g.from + 1, g.to, t.item_bytes[g.item]);
    } else if (g.fetch != not_fetched) {
      profile.add(g.fetch, g.to, t.item_bytes[g.item]);
    }
  }
  return profile;
}

constexpr bool is_at(std::uint32_t position, host_moment m) { return position % 3 == static_cast<std::uint32_t>(m); }

}  // namespace

void park_on_device(const trace& t, const access_lists& lists, byte_count room, const std::vector<double>& host_clock,
                    const tier_rule& rule, residency_plan& plan) {
  occupancy profile = device_profile(t, lists, plan);
  for (const std::uint32_t i : by_worth(plan.host, host_clock, rule)) {
    gap& g = plan.host[i];
    const bool made_there = is_at(g.from, host_moment::arrival);
    if (g.kept || g.fetch == not_fetched || is_at(g.from, host_moment::source)) {
      continue;
    }
    const std::uint32_t first = g.from / 3 + 1;
    const std::uint32_t last = g.fetch / 3 + (is_at(g.fetch, host_moment::arrival) ? 1 : 0);
    const byte_count bytes = t.item_bytes[g.item];
    const bool there_anyway = made_there && plan.device[g.access].kept;
    if (last <= first || (!there_anyway && profile.max(first, last) + bytes > room)) {
      continue;
    }
    g.parked = true;
    if (made_there) {
      plan.device[g.access].parked = true;
    }
    if (!there_anyway) {
      profile.add(first, last, bytes);
    }
  }
}

}  // namespace forebay::plan::detail
