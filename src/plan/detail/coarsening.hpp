#pragma once

#include <optional>
#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// A trace in which several items that the same steps access alike, such as parts of one tensor, are one.
struct coarse_trace {
  trace joined;
  std::vector<item_index> joined_of;  ///< by item of the fine trace
};

/// Joins up to `at_most` neighbours of a kind. Nothing when no two items are alike. O(accesses log items).
[[nodiscard]] std::optional<coarse_trace> coarsen(const trace& t, std::size_t at_most);

}  // namespace forebay::plan::detail
