#include "embedding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "layer_norm.hpp"
#include "linear.hpp"
#include "math.hpp"
#include "parallel.hpp"

namespace train_gpt {
namespace {

/// Where token t's input byte lies; its target is the next one.
[[nodiscard]] std::size_t input_of(const batch_shape& s, std::size_t token) {
  return token / s.context * (s.context + 1) + token % s.context;
}

/// logits = x e^T for an embedding e of [vocabulary, width].
struct tied_layer {
  std::size_t tokens;
  std::size_t width;

  [[nodiscard]] product logits() const {
    return {dense(tokens, width), dense(vocabulary, width).transposed(), dense(tokens, vocabulary)};
  }
  [[nodiscard]] product input_gradient() const {
    return {dense(tokens, vocabulary), dense(vocabulary, width), dense(tokens, width)};
  }
  [[nodiscard]] product weight_gradient(bool accumulate) const {
    return {dense(tokens, vocabulary).transposed(), dense(tokens, width), dense(vocabulary, width), accumulate};
  }
};

template <typename T>
struct scratch_of_head {
  tied_layer layer;
  std::span<T> normed;    ///< [tokens, width]
  std::span<T> d_normed;  ///< [tokens, width]
  std::span<T> logits;    ///< [tokens, vocabulary]; later their gradient
  std::span<T> losses;    ///< [tokens]
  std::span<std::byte> products;

  scratch_of_head(const batch_shape& s, matmul<T>& multiply, scratch& memory) : layer{s.tokens(), s.width} {
    normed = memory.take<T>(s.tokens() * s.width);
    d_normed = memory.take<T>(s.tokens() * s.width);
    logits = memory.take<T>(s.tokens() * vocabulary);
    losses = memory.take<T>(s.tokens());
    products = memory.take<std::byte>(multiply.scratch_bytes(
        {layer.logits(), layer.input_gradient(), layer.weight_gradient(false), layer.weight_gradient(true)}));
  }
};

/// Logits become the gradient of `scale` times the cross entropy; the cross entropy of each token goes to `losses`.
template <typename T>
void cross_entropy(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<T> logits, std::span<T> losses,
                   T scale) {
  parallel_for(s.tokens(), vocabulary, [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = begin; token < end; ++token) {
      T* row = logits.data() + token * vocabulary;
      const std::size_t target = tokens[input_of(s, token) + 1];
      T largest = -std::numeric_limits<T>::infinity();
      for (std::size_t i = 0; i < vocabulary; ++i) {
        largest = row[i] > largest ? row[i] : largest;
      }
      const T of_target = row[target] - largest;
      for (std::size_t i = 0; i < vocabulary; ++i) {
        row[i] = exponential(row[i] - largest);
      }
      const T sum = lane_sum<T>(vocabulary, [&](std::size_t i) { return row[i]; });
      losses[token] = std::log(sum) - of_target;
      const T reciprocal = scale / sum;
      for (std::size_t i = 0; i < vocabulary; ++i) {
        row[i] *= reciprocal;
      }
      row[target] -= scale;
    }
  });
}

}  // namespace

template <typename T>
void embedding_forward(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> token_embedding,
                       std::span<const T> position_embedding, std::span<T> x) {
  parallel_for(s.tokens(), s.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = begin; token < end; ++token) {
      const T* of_byte = token_embedding.data() + tokens[input_of(s, token)] * s.width;
      const T* of_position = position_embedding.data() + token % s.context * s.width;
      for (std::size_t i = 0; i < s.width; ++i) {
        x[token * s.width + i] = of_byte[i] + of_position[i];
      }
    }
  });
}

template <typename T>
void embedding_backward(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> gradient,
                        std::span<T> d_token_embedding, std::span<T> d_position_embedding, bool accumulate) {
  start_gradients(accumulate, {d_position_embedding});
  // Tokens share rows, so the parts are columns.
  parallel_for(s.width, s.tokens(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = 0; token < s.tokens(); ++token) {
      const T* from = gradient.data() + token * s.width;
      T* of_byte = d_token_embedding.data() + tokens[input_of(s, token)] * s.width;
      T* of_position = d_position_embedding.data() + token % s.context * s.width;
      for (std::size_t i = begin; i < end; ++i) {
        of_byte[i] += from[i];
        of_position[i] += from[i];
      }
    }
  });
}

template <typename T>
void head_forward_backward(const batch_shape& s, std::span<const std::uint8_t> tokens, const head_weights<T>& w,
                           std::span<const T> x, std::span<T> gradient, std::span<T> loss, const head_gradients<T>& d,
                           double scale, bool accumulate, matmul<T>& multiply, scratch memory) {
  const scratch_of_head<T> work(s, multiply, memory);
  start_gradients(accumulate, {d.gain, d.bias, loss});
  layer_norm_forward(x, w.gain, w.bias, work.normed);
  multiply(work.layer.logits(), work.normed.data(), w.token_embedding.data(), work.logits.data(), work.products);
  cross_entropy(s, tokens, work.logits, work.losses, static_cast<T>(scale));

  double sum = 0.0;
  for (const T token_loss : work.losses) {
    sum += static_cast<double>(token_loss);
  }
  loss[0] += static_cast<T>(sum * scale);

  multiply(work.layer.weight_gradient(accumulate), work.logits.data(), work.normed.data(), d.token_embedding.data(),
           work.products);
  multiply(work.layer.input_gradient(), work.logits.data(), w.token_embedding.data(), work.d_normed.data(),
           work.products);
  std::fill(gradient.begin(), gradient.end(), T{0});
  layer_norm_backward(x, w.gain, work.d_normed, gradient, d.gain, d.bias);
}

template <typename T>
std::size_t head_scratch(const batch_shape& s, matmul<T>& multiply) {
  scratch memory = scratch::measuring();
  const scratch_of_head<T> work(s, multiply, memory);
  return memory.used();
}

#define INSTANTIATE(T)                                                                                           \
  template void embedding_forward(const batch_shape&, std::span<const std::uint8_t>, std::span<const T>,         \
                                  std::span<const T>, std::span<T>);                                             \
  template void embedding_backward(const batch_shape&, std::span<const std::uint8_t>, std::span<const T>,        \
                                   std::span<T>, std::span<T>, bool);                                            \
  template void head_forward_backward(const batch_shape&, std::span<const std::uint8_t>, const head_weights<T>&, \
                                      std::span<const T>, std::span<T>, std::span<T>, const head_gradients<T>&,  \
                                      double, bool, matmul<T>&, scratch);                                        \
  template std::size_t head_scratch(const batch_shape&, matmul<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace train_gpt
