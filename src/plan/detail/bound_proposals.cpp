#include "plan/detail/bound_proposals.hpp"

#include <algorithm>
#include <utility>

#include "plan/detail/best_partition.hpp"
#include "plan/detail/window_charges.hpp"

namespace forebay::plan::detail {
namespace {

/// Cuts times accesses: what a table of windows may cost.
constexpr std::size_t most_work = 3'000'000;
constexpr std::size_t fewest_cuts = 64;
constexpr std::size_t most_cuts = 512;
constexpr std::int64_t refinement = 8;  ///< cuts come so much closer together from one round to the next

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

bound_proposals::bound_proposals(const trace& t, const machine& m, const timeline& time, bool items_move_whole)
    : trace_(t),
      machine_(m),
      time_(time),
      items_(group_alike(t, time, time.clock == place::device ? m.device_capacity : m.host_capacity, items_move_whole)),
      demands_(demands_of(items_, time)),
      most_cuts_(std::clamp(most_work / (items_.accesses + 1), fewest_cuts, most_cuts)),
      rooms_{0} {
  if (items_move_whole && time.clock == place::device) {
    rooms_ = rooms_to_try(t, m, time, std::clamp<std::size_t>(most_work / (most_cuts_ * (items_.accesses + 1)), 1, 6));
  }
}

bound_proposal bound_proposals::make(std::size_t i) const {
  std::vector<std::int64_t> cuts = first_cuts();
  std::int64_t distance = time_.sub_slots / static_cast<std::int64_t>(cuts.size());
  bound_proposal p = best_over(std::move(cuts), rooms_[i]);
  while (distance > 1) {
    distance = std::max<std::int64_t>(1, distance / refinement);
    p = best_over(cuts_near(p.windows, distance), rooms_[i]);
  }
  return p;
}

/// All boundaries, or so many, evenly spread: of each stretch the start of the step that takes most memory.
std::vector<std::int64_t> bound_proposals::first_cuts() const {
  const std::int64_t n = time_.sub_slots;
  const auto most = static_cast<std::int64_t>(most_cuts_);
  std::vector<std::int64_t> cuts;
  for (std::int64_t i = 0; i < std::min(n, most); ++i) {
    std::int64_t cut = n <= most ? i : i * n / most / 2 * 2;
    for (std::int64_t k = cut; n > most && k < std::min((i + 1) * n / most, n); k += 2) {
      const auto set = [&](std::int64_t boundary) { return time_.working_set[static_cast<std::size_t>(boundary / 2)]; };
      cut = set(k) > set(cut) ? k : cut;
    }
    if (cuts.empty() || cuts.back() < cut) {
      cuts.push_back(cut);
    }
  }
  return cuts;
}

/// As many on either side of each used one as the number of cuts allows.
std::vector<std::int64_t> bound_proposals::cuts_near(const std::vector<bound_window>& used,
                                                     std::int64_t distance) const {
  const std::int64_t n = time_.sub_slots;
  const auto share = static_cast<std::int64_t>(most_cuts_ / (2 * used.size() + 1));
  const std::int64_t either_side = std::clamp<std::int64_t>(share, 1, refinement);
  std::vector<std::int64_t> cuts;
  for (const bound_window& w : used) {
    for (std::int64_t i = -either_side; i <= either_side; ++i) {
      cuts.push_back((w.first_boundary + i * distance + refinement * n) % n);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

bound_proposal bound_proposals::best_over(std::vector<std::int64_t> cuts, byte_count room) const {
  const window_charges windows(trace_, machine_, time_, items_, demands_, std::move(cuts), room);
  bound_proposal p{no_prices(trace_, machine_), {}};
  for (const cyclic_partition::part& part : best_partition(windows).parts) {
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
