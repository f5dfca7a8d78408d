#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/detail/item_demands.hpp"

namespace forebay::plan::detail {

/// Chooses boundaries of a long iteration that windows may begin and end at.
class cut_choice {
 public:
  /// All arguments must outlive this. O(accesses + steps). `most`: so many cuts at a time, two or more.
  cut_choice(const trace& t, const timeline& time, const alike_items& items, const item_demands& demands,
             std::size_t most);

  /// All boundaries, or those where phases turn and, from stretches of equal length, those where most bytes are live.
  [[nodiscard]] std::vector<std::int64_t> first() const;
  /// How far apart those are.
  [[nodiscard]] std::int64_t first_distance() const;
  /// Some cuts, and on either side of each as many others, so far apart, as their number allows.
  [[nodiscard]] std::vector<std::int64_t> near(const std::vector<std::int64_t>& cuts, std::int64_t distance) const;
  /// How many that is on either side.
  [[nodiscard]] std::int64_t either_side(std::size_t cuts) const;

 private:
  const trace& trace_;
  const timeline& time_;
  std::size_t most_;
  std::vector<double> live_;  ///< bytes, by boundary
};

}  // namespace forebay::plan::detail
