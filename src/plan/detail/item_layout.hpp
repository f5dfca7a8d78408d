#pragma once

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

/// Sub-slots in one run of prices, in which the item has no event but at the start and floating ones.
struct item_region {
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

/// One iteration of an item: where its path begins and ends, and the regions in between.
class item_layout {
 public:
  /// The runs partition the sub-slots, in order; there is one at least. Both must outlive this.
  item_layout(const timeline& time, const std::vector<price_run>& runs);

  /// Steps of the clock whose working set is at least `shut_by` leave no room for an item that is not theirs; no
  /// value: any step may leave some room for a part. O(runs + accesses).
  void set(item_story item, std::optional<byte_count> shut_by);

  [[nodiscard]] const item_story& item() const { return item_; }
  [[nodiscard]] std::int64_t anchor() const { return anchor_; }            ///< a sub-slot
  [[nodiscard]] const fixed_access* anchor_access() const { return at_; }  ///< that starts there, if any does
  [[nodiscard]] const std::vector<item_region>& regions() const { return regions_; }  ///< from there on, once round
  /// The floating access of any iteration: index i + n times their number is the i-th one, n iterations on.
  [[nodiscard]] floating_access floating(std::int64_t i) const;
  /// The index of the first one whose range has that edge at `at` or later. Both edges never fall from one to the next.
  [[nodiscard]] std::int64_t first_floating(std::int64_t at, std::int64_t slot_range::*edge) const;

 private:
  void choose_anchor();
  void lay_out(std::optional<byte_count> shut_by);
  void mark_shut(item_region& r, byte_count shut_by) const;
  [[nodiscard]] std::int64_t run_start(std::size_t i) const;
  [[nodiscard]] std::int64_t step_start(std::size_t i) const;

  const timeline& time_;
  const std::vector<price_run>& runs_;
  range_maximum working_sets_;
  item_story item_;
  std::int64_t anchor_ = 0;
  const fixed_access* at_ = nullptr;
  std::vector<item_region> regions_;
};

}  // namespace forebay::plan::detail
