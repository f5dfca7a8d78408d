#include "plan/detail/interval_packing.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace forebay::plan::detail {
namespace {

/// Kept bytes by the last instant at which they must be there: all that the rule needs to know of them.
class sweep {
 public:
  explicit sweep(packing_problem& problem) : problem_(problem) {
    const auto by_first = [](const interval& a, const interval& b) { return a.first < b.first; };
    std::sort(problem_.intervals.begin(), problem_.intervals.end(), by_first);
    std::sort(problem_.forced.begin(), problem_.forced.end(), by_first);
  }

  /// Everything up to, not including, instant `end`.
  void run_to(std::int32_t end) {
    for (; at_ < end && at_ < static_cast<std::int32_t>(problem_.room.size()); ++at_) {
      const std::int32_t instant = problem_.begin + at_;
      for (; next_forced_ < problem_.forced.size() && problem_.forced[next_forced_].first <= instant; ++next_forced_) {
        cost_ += problem_.forced[next_forced_].bytes;
      }
      while (!kept_.empty() && kept_.begin()->first < instant) {
        total_ -= kept_.begin()->second;
        kept_.erase(kept_.begin());
      }
      for (; next_ < problem_.intervals.size() && problem_.intervals[next_].first <= instant; ++next_) {
        kept_[problem_.intervals[next_].last] += problem_.intervals[next_].bytes;
        total_ += problem_.intervals[next_].bytes;
      }
      give_up_what_exceeds(problem_.room[static_cast<std::size_t>(at_)]);
    }
  }

  [[nodiscard]] byte_count cost() const { return cost_; }
  /// The kept bytes, instants counted from the current one.
  [[nodiscard]] std::vector<std::pair<std::int32_t, byte_count>> state() const {
    std::vector<std::pair<std::int32_t, byte_count>> result;
    for (const auto& [last, bytes] : kept_) {
      if (last >= problem_.begin + at_) {
        result.emplace_back(last - problem_.begin - at_, bytes);
      }
    }
    return result;
  }

 private:
  void give_up_what_exceeds(byte_count room) {
    while (total_ > room) {
      const auto furthest = std::prev(kept_.end());
      const byte_count give = std::min(furthest->second, total_ - room);
      cost_ += give;
      total_ -= give;
      furthest->second -= give;
      if (furthest->second == 0) {
        kept_.erase(furthest);
      }
    }
  }

  packing_problem& problem_;
  std::map<std::int32_t, byte_count> kept_;
  byte_count total_ = 0;
  byte_count cost_ = 0;
  std::int32_t at_ = 0;
  std::size_t next_ = 0;
  std::size_t next_forced_ = 0;
};

}  // namespace

byte_count least_transfer(packing_problem problem) {
  const auto end = static_cast<std::int32_t>(problem.room.size());
  sweep s(problem);
  s.run_to(end);
  return s.cost();
}

byte_count least_transfer_per_cycle(packing_problem problem, std::int32_t cycle, std::int32_t cycles) {
  using state = std::vector<std::pair<std::int32_t, byte_count>>;
  sweep s(problem);
  std::vector<std::pair<state, byte_count>> seen;
  for (std::int32_t c = 0; c + 2 < cycles; ++c) {
    s.run_to((c + 1) * cycle);
    state now = s.state();
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].first == now) {
        return (s.cost() - seen[i].second) / (seen.size() - i);
      }
    }
    seen.emplace_back(std::move(now), s.cost());
  }
  s.run_to(static_cast<std::int32_t>(problem.room.size()));
  return s.cost() / static_cast<byte_count>(cycles);
}

}  // namespace forebay::plan::detail
