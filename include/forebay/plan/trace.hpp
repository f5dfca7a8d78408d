#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/plan/order.hpp>
#include <forebay/plan/packing.hpp>

namespace forebay::plan {

/// A planner's item: in the engine a block, in a study anything that moves as one.
using item_index = std::uint32_t;

struct item_access {
  item_index item = 0;
  uses how = uses::none;
};

/// A step as the planner sees it. Each item appears at most once in `accesses`.
struct trace_step {
  place where = place::device;
  double seconds = 0.0;
  byte_count workspace = 0;
  std::string phase;
  std::vector<item_access> accesses;
};

/// The room that a step's workspace takes in its tier: whole alignment units, as memory is given out.
[[nodiscard]] constexpr byte_count workspace_room(const trace_step& s) {
  return align_up(s.workspace, block_alignment);
}

/// One cyclic iteration over items of known sizes: all that planning, bounding and simulating need. A plain value.
struct trace {
  std::vector<byte_count> item_bytes;  ///< padded, by item index
  std::vector<trace_step> steps;
};

}  // namespace forebay::plan
