#pragma once

#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// A trace in which all items that the same steps access alike, such as the parts of one tensor, are one.
struct coarse_trace {
  trace joined;
  std::vector<item_index> joined_of;  ///< by item of the fine trace: the one that stands for it
};

/// O(accesses log items).
[[nodiscard]] coarse_trace coarsen(const trace& t);

}  // namespace forebay::plan::detail
