#include "plan/detail/bound_proposals.hpp"

#include <algorithm>
#include <utility>

#include "plan/detail/best_partition.hpp"
#include "plan/detail/window_charges.hpp"

namespace forebay::plan::detail {
namespace {

/// Cuts times accesses: what a table of windows may cost.
constexpr std::size_t most_work = 3'000'000;
constexpr std::size_t fewest_cuts = 40;
constexpr std::size_t most_cuts = 512;
constexpr int most_last_rounds = 3;  ///< with neighbouring cuts, while that gains something

std::vector<byte_count> distinct(std::vector<byte_count> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// Room that a step has to leave for what is moved beside it, in a few ways to see it: none, or enough for some size of
/// items. Those that shut out the same steps are one.
std::vector<byte_count> rooms_to_try(const trace& t, const machine& m, const timeline& time, std::size_t most) {
  std::vector<byte_count> rooms;
  std::ptrdiff_t last = -1;
  const std::vector<byte_count> sizes = distinct(t.item_bytes);
  for (std::size_t i = 0; i <= most; ++i) {
    const byte_count room =
        i == 0 || sizes.empty() ? 0 : sizes[std::min(sizes.size() - 1, (i - 1) * sizes.size() / most)];
    const std::ptrdiff_t shut = std::count_if(time.working_set.begin(), time.working_set.end(),
                                              [&](byte_count w) { return w + room > m.device_capacity; });
    if (shut != last) {
      rooms.push_back(room);
      last = shut;
    }
  }
  return rooms;
}

}  // namespace

bound_proposals::bound_proposals(const trace& t, const machine& m, const timeline& time,
                                 const bound_search_options& options)
    : trace_(t),
      machine_(m),
      time_(time),
      items_(group_alike(t, time, time.clock == place::device ? m.device_capacity : m.host_capacity,
                         options.items_move_whole)),
      demands_(demands_of(items_, time)),
      most_cuts_(options.most_cuts.value_or(std::clamp(most_work / (items_.accesses + 1), fewest_cuts, most_cuts))),
      cuts_(t, time, items_, demands_, most_cuts_),
      rooms_{0} {
  if (options.items_move_whole && time.clock == place::device) {
    rooms_ = rooms_to_try(t, m, time, std::clamp<std::size_t>(most_work / (most_cuts_ * (items_.accesses + 1)), 1, 6));
  }
}

bound_proposal bound_proposals::make(std::size_t i) const {
  const std::vector<std::int64_t> first = cuts_.first();
  bound_proposal p = best_over(first, rooms_[i]);
  if (first.size() == static_cast<std::size_t>(time_.sub_slots)) {
    return p;
  }
  std::int64_t distance = cuts_.first_distance();
  for (int last_rounds = 0; last_rounds < most_last_rounds;) {
    std::vector<std::int64_t> used;
    for (const bound_window& w : p.windows) {
      used.push_back(w.first_boundary);
    }
    distance = std::max<std::int64_t>(1, distance / (cuts_.either_side(used.size()) + 1));
    bound_proposal next = best_over(cuts_.near(used, distance), rooms_[i]);
    last_rounds = distance > 1 ? 0 : (next.seconds > p.seconds ? last_rounds + 1 : most_last_rounds);
    p = std::move(next);
  }
  return p;
}

bound_proposal bound_proposals::best_over(std::vector<std::int64_t> cuts, byte_count room) const {
  const window_charges windows(trace_, machine_, time_, items_, demands_, std::move(cuts), room);
  const cyclic_partition partition = best_partition(windows);
  bound_proposal p{no_prices(trace_, machine_), {}, partition.seconds};
  for (const cyclic_partition::part& part : partition.parts) {
    windows.add_prices(part.from, part.count, p.prices);
    const std::size_t end = (part.from + part.count) % windows.cuts().size();
    const bound_window w{windows.cuts()[part.from], windows.cuts()[end], windows.charged(part.from, part.count),
                         windows.seconds(part.from, part.count)};
    const bool goes_on = !p.windows.empty() && w.charged == resource::compute && p.windows.back().charged == w.charged;
    if (goes_on) {
      p.windows.back().end_boundary = w.end_boundary;
      p.windows.back().seconds += w.seconds;
    } else {
      p.windows.push_back(w);
    }
  }
  return p;
}

}  // namespace forebay::plan::detail
