#include <forebay/plan/placement.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <forebay/base/contract.hpp>

#include "detail/residencies.hpp"

namespace forebay::plan {
namespace {

/// Stays that have an offset, found by the part of the cycle that they touch.
class occupied {
 public:
  occupied(const std::vector<residency>& stays, std::uint32_t period)
      : stays_(stays), period_(period), width_(std::max<std::uint32_t>(1, period / 512)), seen_(stays.size(), 0) {
    parts_.resize(period / width_ + 1);
  }

  /// The lowest offset at which nothing is during the stay.
  byte_count first_fit(std::uint32_t stay) {
    ++round_;
    taken_.clear();
    each_part(stays_[stay], [&](std::vector<std::uint32_t>& part) {
      for (const std::uint32_t other : part) {
        if (seen_[other] != round_ && together(stays_[stay], stays_[other])) {
          seen_[other] = round_;
          taken_.emplace_back(stays_[other].offset, stays_[other].offset + stays_[other].bytes);
        }
      }
    });
    std::sort(taken_.begin(), taken_.end());
    byte_count at = 0;
    for (const auto& [begin, end] : taken_) {
      if (begin >= at + stays_[stay].bytes) {
        break;
      }
      at = std::max(at, end);
    }
    return at;
  }

  void add(std::uint32_t stay) {
    each_part(stays_[stay], [&](std::vector<std::uint32_t>& part) { part.push_back(stay); });
  }

 private:
  template <typename Each>
  void each_part(const residency& r, Each&& each) {
    const std::uint32_t last = r.first + r.length - 1;
    for (std::uint32_t p = r.first / width_; p <= std::min(last, period_ - 1) / width_; ++p) {
      each(parts_[p]);
    }
    if (last >= period_) {
      for (std::uint32_t p = 0; p <= (last - period_) / width_; ++p) {
        each(parts_[p]);
      }
    }
  }
  [[nodiscard]] bool together(const residency& a, const residency& b) const {
    const std::uint32_t later = b.first >= a.first ? b.first - a.first : b.first + period_ - a.first;
    return later < a.length || later + b.length > period_;  // b begins during a, or a begins during b
  }

  const std::vector<residency>& stays_;
  std::uint32_t period_;
  std::uint32_t width_;
  std::vector<std::vector<std::uint32_t>> parts_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
  std::vector<std::pair<byte_count, byte_count>> taken_;
};

byte_count place_in_order(std::vector<residency>& stays, std::uint32_t period,
                          const std::vector<std::uint32_t>& order) {
  occupied there(stays, period);
  byte_count height = 0;
  for (const std::uint32_t stay : order) {
    stays[stay].offset = there.first_fit(stay);
    height = std::max(height, stays[stay].offset + stays[stay].bytes);
    there.add(stay);
  }
  return height;
}

/// Sorts before what: large; long; large times long; early, but what goes past the end before all.
double rank(const residency& r, std::uint32_t period, int by) {
  const auto bytes = static_cast<double>(r.bytes);
  const auto length = static_cast<double>(r.length);
  switch (by) {
    case 0:
      return -bytes;
    case 1:
      return -length;
    case 2:
      return -bytes * length;
    default:
      return r.first + r.length > period ? -1.0 : static_cast<double>(r.first);
  }
}

byte_count most_at_once(const std::vector<residency>& stays, std::uint32_t period) {
  std::vector<std::int64_t> change(std::size_t{period} + 1, 0);
  for (const residency& r : stays) {
    const auto bytes = static_cast<std::int64_t>(r.bytes);
    const std::uint32_t end = r.first + r.length;
    change[r.first] += bytes;
    change[end > period ? end - period : end] -= bytes;
    change[0] += end > period ? bytes : 0;
  }
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const std::int64_t c : change) {
    now += c;
    most = std::max(most, now);
  }
  return static_cast<byte_count>(most);
}

}  // namespace

placement place_in(copies tier, const trace& t, const schedule& s, byte_count alignment) {
  FOREBAY_EXPECTS(is_power_of_two(alignment), "an alignment is a power of two");
  const auto period = static_cast<std::uint32_t>(s.operations.size());
  std::vector<residency> stays = detail::residencies(tier, t, s, alignment);
  placement best{stays, 0, most_at_once(stays, period)};
  for (int by = 0; by < 4 && (by == 0 || best.height > best.load); ++by) {
    std::vector<std::uint32_t> order(stays.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return rank(stays[a], period, by) < rank(stays[b], period, by);
    });
    const byte_count height = place_in_order(stays, period, order);
    if (by == 0 || height < best.height) {
      best.stays = stays;
      best.height = height;
    }
  }
  return best;
}

}  // namespace forebay::plan
