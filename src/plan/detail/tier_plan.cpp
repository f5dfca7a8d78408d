#include "plan/detail/tier_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "plan/detail/occupancy.hpp"

namespace forebay::plan::detail {
namespace {

/// Seconds from the start of step `from` to that of step `to`, which may lie in the next iteration.
double seconds_between(const std::vector<double>& starts, std::uint32_t from, std::uint32_t to) {
  const auto steps = static_cast<std::uint32_t>(starts.size() - 1);
  const auto at = [&](std::uint32_t p) { return (p / steps) * starts.back() + starts[p % steps]; };
  return at(to) - at(from);
}

std::uint32_t reversed_bits(std::uint32_t value, unsigned bits) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < bits; ++i) {
    result |= ((value >> i) & 1U) << (bits - 1 - i);
  }
  return result;
}

/// Fetches start as late as can be and are then moved ahead one step at a time, in the order of their deadlines, while
/// there is room: no fetch takes the room of one that is needed earlier.
void bring_ahead(std::vector<gap>& gaps, const std::vector<byte_count>& item_bytes, std::vector<byte_count> profile,
                 byte_count capacity, const std::vector<double>& starts, const tier_rule& rule) {
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    if (!gaps[i].kept && gaps[i].needed) {
      gaps[i].fetch = gaps[i].to;
      waiting.push_back(i);
    }
  }
  const auto steps = static_cast<std::uint32_t>(starts.size() - 1);
  const auto deadline = [&](std::uint32_t i) { return std::pair(gaps[i].to % steps, gaps[i].item); };
  std::sort(waiting.begin(), waiting.end(), [&](auto a, auto b) { return deadline(a) < deadline(b); });
  while (!waiting.empty()) {
    std::vector<std::uint32_t> again;
    for (const std::uint32_t i : waiting) {
      gap& g = gaps[i];
      const byte_count bytes = item_bytes[g.item];
      const std::uint32_t ahead = g.fetch - 1;
      if (g.fetch <= g.earliest || g.to - ahead > rule.most_ahead ||
          seconds_between(starts, ahead, g.to) > rule.lead * starts.back() ||
          profile[ahead % steps] + bytes > capacity) {
        continue;
      }
      profile[ahead % steps] += bytes;
      g.fetch = ahead;
      again.push_back(i);
    }
    waiting.swap(again);
  }
}

}  // namespace

// Equal ones are taken in bit-reversed order of time, so that
// what is not kept is spread over the cycle and no link has bursts.
std::vector<std::uint32_t> by_worth(const std::vector<gap>& gaps, const std::vector<double>& starts,
                                    const tier_rule& rule) {
  const selection by = rule.by;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].may_keep) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(gaps[a].from, gaps[a].item) < std::tie(gaps[b].from, gaps[b].item);
  });
  unsigned bits = 1;
  while ((std::size_t{1} << bits) < order.size()) {
    ++bits;
  }
  using key = std::tuple<double, std::uint32_t, std::uint32_t>;
  std::vector<key> keys(order.size());
  const double instant = 1e-6 * starts.back() + 1e-300;
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) {
    const gap& g = gaps[order[rank]];
    double worth = g.bias + (g.persists ? rule.persisting : 0.0);
    if (by == selection::furthest_next_use) {
      worth -= std::log(static_cast<double>(g.to - g.from));
    } else {
      const double density = g.seconds_per_byte / (seconds_between(starts, g.from, g.to) + instant);
      worth += std::log(density + 1e-300);
      worth = by == selection::density ? worth : std::floor(worth / 0.25);
    }
    keys[rank] = {-worth, by == selection::spread_density ? reversed_bits(rank, bits) : rank, order[rank]};
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    order[i] = std::get<2>(keys[i]);
  }
  return order;
}

void plan_tier(std::vector<gap>& gaps, const std::vector<byte_count>& item_bytes,
               const std::vector<byte_count>& working_set, byte_count capacity, const std::vector<double>& starts,
               const tier_rule& rule) {
  occupancy profile(working_set);
  const byte_count base = profile.max(0, static_cast<std::uint32_t>(working_set.size()));
  const auto room = static_cast<byte_count>((1.0 - rule.slack) * static_cast<double>(capacity));
  const byte_count limit = std::min(capacity, std::max(room, base));
  for (gap& g : gaps) {
    g.kept = false;
    g.fetch = not_fetched;
  }
  for (const std::uint32_t i : by_worth(gaps, starts, rule)) {
    gap& g = gaps[i];
    if (g.persists && g.to - g.from > rule.longest_kept) {
      continue;
    }
    const byte_count bytes = item_bytes[g.item];
    if (profile.max(g.from + 1, g.to) + bytes <= limit || g.from + 1 == g.to) {
      profile.add(g.from + 1, g.to, bytes);
      g.kept = true;
    }
  }
  bring_ahead(gaps, item_bytes, profile.bytes(), capacity, starts, rule);
}

}  // namespace forebay::plan::detail
