#pragma once

#include <cstddef>
#include <span>

#include <forebay/optimizer/simd.hpp>

namespace forebay {

/// A sum of squares whose shape is fixed, so that its bits do not depend on instructions, threads, blocks or devices:
///
/// - a tensor is cut into leaves of 4,096 elements (the last may be shorter); a leaf never straddles tensors;
/// - within a leaf, 16 lanes in double: lane j takes elements j, j + 16, ... in order (a square of an fp32 is exact in
///   double), then lanes are added in a tree: j with j + 8, then j + 4, j + 2, j + 1;
/// - leaves of a tensor, in order, by `tree_sum`; tensors, in the order of registration, by `tree_sum`.
///
/// Squares of fp32 can't overflow a double: a sum is finite if and only if every element is.
inline constexpr std::size_t norm_leaf_elements = 4096;

/// How many leaves a tensor of that many elements has.
[[nodiscard]] constexpr std::size_t norm_leaves(std::size_t elements) {
  return (elements + norm_leaf_elements - 1) / norm_leaf_elements;
}

/// The sum of one leaf: at most 4,096 elements, of any alignment; 0 when empty. Thread-safe.
/// \throws usage_error on a longer span, unsupported_error when the CPU lacks `level`.
[[nodiscard]] double leaf_sum_of_squares(std::span<const float> leaf, simd_level level = best_simd_level());

/// Adds neighbours in pairs, then neighbouring pairs, and so on; an odd last one is passed up unchanged. 0 when empty.
/// Overwrites its input.
[[nodiscard]] double tree_sum(std::span<double> values) noexcept;

/// All of one tensor, on the calling thread.
[[nodiscard]] double sum_of_squares(std::span<const float> tensor, simd_level level = best_simd_level());

/// What gradients are multiplied by so that their norm is at most `clip_norm`; 1 when it already is, or `clip_norm`
/// is 0 (no clipping).
[[nodiscard]] float clip_scale(double norm, float clip_norm) noexcept;

}  // namespace forebay
