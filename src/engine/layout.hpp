#pragma once

#include <optional>
#include <vector>

#include <forebay/engine/options.hpp>
#include <forebay/plan/packing.hpp>
#include <forebay/plan/trace.hpp>

#include "engine/scheduler.hpp"

namespace forebay::detail {

/// Where an order's tensors lie, or would lie: the tensors that have no block yet, packed; and the steps over blocks.
struct layout {
  std::vector<plan::packed_block> fresh;  ///< gets the block indices from `first_fresh` on
  std::uint32_t first_fresh = 0;
  std::vector<std::uint32_t> block_of;    ///< by tensor index
  std::vector<std::uint32_t> tensors_in;  ///< by block index
  plan::trace trace;                      ///< items are blocks
};

/// What a step does to blocks, given what it does to tensors. A block is created only when every tensor in it is.
[[nodiscard]] std::vector<block_access> accesses_by_block(const std::vector<access>& tensors,
                                                          const std::vector<std::uint32_t>& block_of,
                                                          const std::vector<std::uint32_t>& tensors_in);

}  // namespace forebay::detail
