#pragma once

#include <cstddef>
#include <span>

#include "operations.hpp"
#include "scratch.hpp"

namespace train_gpt {

/// The hidden layer is this many times as wide as the residual stream.
inline constexpr std::size_t mlp_factor = 4;

// The MLP is two steps in each direction, so that a step holds only one of its two large matrices.

template <typename T>
struct mlp_up_weights {
  std::span<const T> gain, bias;          ///< [width], of the layer norm
  std::span<const T> up_weight, up_bias;  ///< [width, 4 width], [4 width]
};
template <typename T>
struct mlp_up_gradients {
  std::span<T> gain, bias, up_weight, up_bias;
};
template <typename T>
struct mlp_down_weights {
  std::span<const T> down_weight, down_bias;  ///< [4 width, width], [width]
};
template <typename T>
struct mlp_down_gradients {
  std::span<T> down_weight, down_bias;
};

/// hidden = up(norm(x)), before the GELU: [tokens, 4 width].
template <typename T>
void mlp_up_forward(const batch_shape& shape, const mlp_up_weights<T>& weights, std::span<const T> x,
                    std::span<T> hidden, operations<T>& compute, scratch memory);
/// y = x + down(gelu(hidden)).
template <typename T>
void mlp_down_forward(const batch_shape& shape, const mlp_down_weights<T>& weights, std::span<const T> hidden,
                      std::span<const T> x, std::span<T> y, operations<T>& compute, scratch memory);

/// From dy to the gradient of `hidden`. dy itself is also the gradient of the residual x and stays.
template <typename T>
void mlp_down_backward(const batch_shape& shape, const mlp_down_weights<T>& weights, std::span<const T> hidden,
                       std::span<const T> gradient, std::span<T> d_hidden, const mlp_down_gradients<T>& gradients,
                       bool accumulate, operations<T>& compute, scratch memory);
/// Adds to `gradient` (dy) what comes through the hidden layer: dx.
template <typename T>
void mlp_up_backward(const batch_shape& shape, const mlp_up_weights<T>& weights, std::span<const T> x,
                     std::span<const T> d_hidden, std::span<T> gradient, const mlp_up_gradients<T>& gradients,
                     bool accumulate, operations<T>& compute, scratch memory);

/// The workspace that these steps must be given.
template <typename T>
[[nodiscard]] std::size_t mlp_up_forward_scratch(const batch_shape& shape, operations<T>& compute);
template <typename T>
[[nodiscard]] std::size_t mlp_down_forward_scratch(const batch_shape& shape, operations<T>& compute);
template <typename T>
[[nodiscard]] std::size_t mlp_down_backward_scratch(const batch_shape& shape, operations<T>& compute);
template <typename T>
[[nodiscard]] std::size_t mlp_up_backward_scratch(const batch_shape& shape, operations<T>& compute);

}  // namespace train_gpt
