#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "operations.hpp"
#include "scratch.hpp"

namespace train_gpt {

// Both ends of the model. They share the token embedding: the output head multiplies by its transpose.
// `tokens` is [sequences, context + 1] bytes: the input of position i is byte i, its target byte i + 1.

/// x[token] = token_embedding[byte] + position_embedding[position].
template <typename T>
void embedding_forward(const batch_shape& shape, std::span<const std::uint8_t> tokens,
                       std::span<const T> token_embedding, std::span<const T> position_embedding, std::span<T> x,
                       operations<T>& compute);
/// Adds to the token embedding's gradient (the head has set it); sets or adds to that of the positions.
template <typename T>
void embedding_backward(const batch_shape& shape, std::span<const std::uint8_t> tokens, std::span<const T> gradient,
                        std::span<T> d_token_embedding, std::span<T> d_position_embedding, bool accumulate,
                        operations<T>& compute);

template <typename T>
struct head_weights {
  std::span<const T> gain, bias;       ///< [width], of the final layer norm
  std::span<const T> token_embedding;  ///< [vocabulary, width]
};
template <typename T>
struct head_gradients {
  std::span<T> gain, bias, token_embedding;
};

/// Final norm, logits, cross entropy, and back: `gradient` becomes that of x. `loss` (one element) is set to, or added
/// to by, the sum over the tokens of their cross entropy times `scale`; gradients are those of that sum. The logits
/// exist in scratch only.
template <typename T>
void head_forward_backward(const batch_shape& shape, std::span<const std::uint8_t> tokens,
                           const head_weights<T>& weights, std::span<const T> x, std::span<T> gradient,
                           std::span<T> loss, const head_gradients<T>& gradients, double scale, bool accumulate,
                           operations<T>& compute, scratch memory);

template <typename T>
[[nodiscard]] std::size_t head_scratch(const batch_shape& shape, operations<T>& compute);

}  // namespace train_gpt
