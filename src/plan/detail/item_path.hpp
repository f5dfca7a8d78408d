#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/detail/range_maximum.hpp"
#include "plan/detail/timeline.hpp"

namespace forebay::plan::detail {

/// Sub-slots in which all prices are the same, with no price of memory at the boundaries between them. All prices are
/// those of one byte, in seconds of the iteration.
struct price_run {
  std::int64_t first = 0;
  double h2d = 0.0;
  double d2h = 0.0;
  double storage_read = 0.0;   ///< on the cheapest path; infinite without any
  double storage_write = 0.0;  ///< likewise
  double device = 0.0;         ///< at the boundary where the run begins
  double host = 0.0;           ///< likewise
};

/// Finds the cheapest way for an item to be where the steps need it, on average over iterations: the cheapest closed
/// path over the sets of tiers that hold a current copy.
class item_path {
 public:
  /// The runs partition the sub-slots, in order; there is one at least. Both must outlive this.
  item_path(const timeline& time, const std::vector<price_run>& runs);

  /// Steps of the clock whose working set exceeds `room` leave none for an item that is not theirs; no value: items
  /// are divisible, and any step may leave some room for a part.
  /// Seconds per byte; zero where more steps overlap than can be told apart at a fair cost.
  /// O((runs + accesses) x ways to begin).
  [[nodiscard]] double cheapest(const item_story& item, std::optional<byte_count> room);

  /// The most additions that a result is made of.
  [[nodiscard]] std::size_t longest_sum() const { return longest_sum_; }

 private:
  /// Least cost by set of tiers (device 1, host 2, storage 4) with a current copy; the empty set stands for contents
  /// that nobody needs any more.
  using costs = std::array<double, 8>;

  /// Sub-slots in one run of prices, in which the item has no event but at the start and floating ones.
  struct region {
    std::int64_t first = 0;
    std::int64_t end = 0;
    const price_run* run = nullptr;
    bool pays = false;                     ///< the run begins here
    const fixed_access* begins = nullptr;  ///< a step of the clock starts here; the region is its duration
    const fixed_access* ended = nullptr;   ///< one has just ended
    bool shut_first = false;               ///< no room for the item in the first sub-slot
    bool shut_later = false;               ///< in one of the others
    bool shut_last = false;                ///< in the last one
  };

  [[nodiscard]] double cheapest_closed_path(std::optional<byte_count> room);
  void choose_anchor();
  void lay_out(std::optional<byte_count> room);
  void mark_shut(region& r, byte_count room) const;
  [[nodiscard]] floating_access floating(std::int64_t index) const;
  [[nodiscard]] std::int64_t first_floating(std::int64_t at, std::int64_t slot_range::*edge) const;
  [[nodiscard]] std::vector<std::size_t> sets_at_anchor() const;
  [[nodiscard]] double closed_path(std::int64_t behind, std::size_t set);
  void cross(const region& r);
  void enter(const region& r, costs& c) const;
  void stay(const region& r, costs& c) const;
  static void move_copies(const price_run& run, costs& c);
  static void use(uses how, std::size_t tier, costs& c);

  const timeline& time_;
  const std::vector<price_run>& runs_;
  std::size_t own_;    ///< the clock's tier, as a bit of a set
  std::size_t other_;  ///< that of the floating steps
  range_maximum working_sets_;
  std::size_t longest_sum_ = 0;

  // Of the item at hand.
  item_story item_;
  std::int64_t anchor_ = 0;           ///< the sub-slot where the path begins and ends
  const fixed_access* at_ = nullptr;  ///< that starts there
  std::vector<region> regions_;       ///< from the anchor on, once round
  std::int64_t behind_ = 0;           ///< floating accesses at the anchor, counted over iterations
  std::size_t least_ = 0;             ///< further ones that are behind where the path is by now
  std::vector<costs> by_progress_;    ///< by further ones that are
};

}  // namespace forebay::plan::detail
