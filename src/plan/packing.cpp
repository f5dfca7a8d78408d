#include <forebay/plan/packing.hpp>

#include <map>
#include <unordered_map>
#include <utility>

namespace forebay::plan {
namespace {

using signature = std::vector<std::uint64_t>;  // the group, then one number per access: (step, uses)

std::unordered_map<tensor_id, signature> signatures_of(const order& steps) {
  std::unordered_map<tensor_id, signature> result;
  for (std::uint64_t s = 0; s < steps.steps().size(); ++s) {
    for (const access& a : steps.steps()[s].accesses) {
      result[a.tensor].push_back((s << 8U) | static_cast<std::uint64_t>(a.how));
    }
  }
  return result;
}

}  // namespace

std::vector<packed_block> pack(std::span<const packable_tensor> tensors, const order& steps, byte_count largest) {
  auto signatures = signatures_of(steps);
  std::vector<packed_block> blocks;
  std::map<signature, std::size_t> open;  // the block that still takes tensors of this signature
  for (const packable_tensor& t : tensors) {
    signature key = signatures[t.tensor];
    key.insert(key.begin(), t.group);
    const auto found = open.find(key);
    if (found != open.end()) {
      packed_block& block = blocks[found->second];
      const byte_count offset = align_up(block.bytes, tensor_alignment);
      if (offset + t.bytes <= largest) {
        block.tensors.push_back(t.tensor);
        block.offsets.push_back(offset);
        block.bytes = offset + t.bytes;
        continue;
      }
    }
    open[key] = blocks.size();
    blocks.push_back({{t.tensor}, {0}, t.bytes});
  }
  for (packed_block& block : blocks) {
    block.bytes = align_up(block.bytes, block_alignment);
  }
  return blocks;
}

}  // namespace forebay::plan
