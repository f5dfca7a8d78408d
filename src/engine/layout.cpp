#include "engine/layout.hpp"

#include <algorithm>
#include <unordered_map>

namespace forebay::detail {

std::vector<block_access> accesses_by_block(const std::vector<access>& tensors,
                                            const std::vector<std::uint32_t>& block_of,
                                            const std::vector<std::uint32_t>& tensors_in) {
  struct tally {
    std::uint32_t created = 0;
    uses how = uses::none;
  };
  std::vector<block_access> blocks;
  std::unordered_map<std::uint32_t, tally> tallies;
  for (const access& a : tensors) {
    const std::uint32_t block = block_of[a.tensor.index];
    const auto [found, first] = tallies.emplace(block, tally{});
    if (first) {
      blocks.push_back({block, uses::none});
    }
    found->second.created += has(a.how, uses::create) ? 1 : 0;
    found->second.how = found->second.how | a.how;
  }
  for (block_access& b : blocks) {
    const tally& t = tallies[b.block];
    const bool all_created = t.created == tensors_in[b.block];
    b.how = t.created == 0 || all_created ? t.how : (uses::read | uses::write);
  }
  return blocks;
}

}  // namespace forebay::detail
