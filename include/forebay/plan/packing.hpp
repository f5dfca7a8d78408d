#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/id.hpp>
#include <forebay/plan/order.hpp>

namespace forebay::plan {

/// Tensors start at multiples of this inside a block: a cache line pair, and what GPU loads like.
inline constexpr byte_count tensor_alignment = 256;
/// Blocks take multiples of this in every tier: the unit of direct I/O and of pages.
inline constexpr byte_count block_alignment = 4_KiB;

struct packable_tensor {
  tensor_id tensor;
  byte_count bytes = 0;
  std::uint8_t group = 0;  ///< only tensors of the same group (role) share a block
};

struct packed_block {
  std::vector<tensor_id> tensors;
  std::vector<byte_count> offsets;  ///< of each tensor inside the block
  byte_count bytes = 0;             ///< a multiple of block_alignment
};

/// Groups tensors that the order accesses identically (same steps, same uses) into blocks of at most `largest` bytes; a
/// tensor above that is its own block. Keeps the given sequence inside a block and among blocks' first tensors.
[[nodiscard]] std::vector<packed_block> pack(std::span<const packable_tensor> tensors, const order& steps,
                                             byte_count largest);

}  // namespace forebay::plan
