#pragma once

#include <cstddef>
#include <span>

#include "operations.hpp"
#include "scratch.hpp"

namespace train_gpt {

template <typename T>
struct attention_weights {
  std::span<const T> gain, bias;            ///< [width], of the layer norm
  std::span<const T> qkv_weight, qkv_bias;  ///< [width, 3 width], [3 width]: queries, keys, values
  std::span<const T> out_weight, out_bias;  ///< [width, width], [width]
};

template <typename T>
struct attention_gradients {
  std::span<T> gain, bias, qkv_weight, qkv_bias, out_weight, out_bias;
};

/// What the forward step leaves for the backward step.
template <typename T>
struct attention_saved {
  std::span<T> qkv;       ///< [tokens, 3 width]
  std::span<T> log_sums;  ///< [sequences, heads, context]: log of each softmax row's sum
  std::span<T> mixed;     ///< [tokens, width]: the heads' outputs, side by side
};

/// y = x + out(attention(norm(x))), causal, for x and y of [tokens, width].
template <typename T>
void attention_forward(const batch_shape& shape, const attention_weights<T>& weights, std::span<const T> x,
                       std::span<T> y, const attention_saved<T>& saved, operations<T>& compute, scratch memory);

/// `gradient` holds dy and becomes dx. Weight gradients are added to when `accumulate`, else set.
template <typename T>
void attention_backward(const batch_shape& shape, const attention_weights<T>& weights, std::span<const T> x,
                        const attention_saved<const T>& saved, std::span<T> gradient,
                        const attention_gradients<T>& gradients, bool accumulate, operations<T>& compute,
                        scratch memory);

/// The workspace that these steps must be given.
template <typename T>
[[nodiscard]] std::size_t attention_forward_scratch(const batch_shape& shape, operations<T>& compute);
template <typename T>
[[nodiscard]] std::size_t attention_backward_scratch(const batch_shape& shape, operations<T>& compute);

}  // namespace train_gpt
