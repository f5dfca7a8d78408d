#include "attention.hpp"

#include <cmath>
#include <limits>

#include "layer_norm.hpp"
#include "linear.hpp"
#include "math.hpp"
#include "parallel.hpp"

namespace train_gpt {
namespace {

/// The products of one sequence, batched over its heads. Head h of the queries, keys and values is a column range of
/// the [context, 3 width] matrix, and of the mixed values one of the [context, width] matrix.
struct head_products {
  std::size_t heads;
  layout qkv;      ///< [context, head width] inside queries, keys or values
  layout mixed;    ///< [context, head width] inside the mixed values
  layout weights;  ///< [context, context], one per head

  explicit head_products(const batch_shape& s)
      : heads(s.heads),
        qkv{s.context, s.head_width(), 3 * s.width, 1, s.head_width()},
        mixed{s.context, s.head_width(), s.width, 1, s.head_width()},
        weights(dense(s.context, s.context)) {}

  [[nodiscard]] product scores() const { return {qkv, qkv.transposed(), weights, false, heads}; }
  [[nodiscard]] product mix() const { return {weights, qkv, mixed, false, heads}; }
  [[nodiscard]] product weight_gradient() const { return {mixed, qkv.transposed(), weights, false, heads}; }
  [[nodiscard]] product value_gradient() const { return {weights.transposed(), mixed, qkv, false, heads}; }
  [[nodiscard]] product query_gradient() const { return {weights, qkv, qkv, false, heads}; }
  [[nodiscard]] product key_gradient() const { return {weights.transposed(), qkv, qkv, false, heads}; }
};

template <typename T>
struct forward_scratch {
  linear qkv_layer, out_layer;
  std::span<T> normed;   ///< [tokens, width]
  std::span<T> weights;  ///< [heads, context, context] of one sequence
  std::span<std::byte> products;

  forward_scratch(const batch_shape& s, matmul<T>& multiply, scratch& memory)
      : qkv_layer{s.tokens(), s.width, 3 * s.width}, out_layer{s.tokens(), s.width, s.width} {
    const head_products heads(s);
    normed = memory.take<T>(s.tokens() * s.width);
    weights = memory.take<T>(s.heads * s.context * s.context);
    products = memory.take<std::byte>(
        multiply.scratch_bytes({qkv_layer.forward(), out_layer.forward(), heads.scores(), heads.mix()}));
  }
};

template <typename T>
struct backward_scratch {
  linear qkv_layer, out_layer;
  std::span<T> normed;   ///< [tokens, width]
  std::span<T> d_mixed;  ///< [tokens, width]; later the gradient of `normed`
  std::span<T> d_qkv;    ///< [tokens, 3 width]
  std::span<T> weights;  ///< [heads, context, context] of one sequence
  std::span<T> d_weights;
  std::span<std::byte> products;

  backward_scratch(const batch_shape& s, matmul<T>& multiply, scratch& memory)
      : qkv_layer{s.tokens(), s.width, 3 * s.width}, out_layer{s.tokens(), s.width, s.width} {
    const head_products heads(s);
    normed = memory.take<T>(s.tokens() * s.width);
    d_mixed = memory.take<T>(s.tokens() * s.width);
    d_qkv = memory.take<T>(s.tokens() * 3 * s.width);
    weights = memory.take<T>(s.heads * s.context * s.context);
    d_weights = memory.take<T>(s.heads * s.context * s.context);
    products = memory.take<std::byte>(multiply.scratch_bytes(
        {out_layer.input_gradient(), out_layer.weight_gradient(false), out_layer.weight_gradient(true),
         qkv_layer.input_gradient(), qkv_layer.weight_gradient(false), qkv_layer.weight_gradient(true), heads.scores(),
         heads.weight_gradient(), heads.value_gradient(), heads.query_gradient(), heads.key_gradient()}));
  }
};

template <typename T>
[[nodiscard]] T score_scale(const batch_shape& s) {
  return T{1} / std::sqrt(static_cast<T>(s.head_width()));
}

/// Scores become causal softmax weights; `log_sums[row]` becomes the logarithm of the sum of exponentials.
template <typename T>
void softmax_rows(const batch_shape& s, std::span<T> weights, std::span<T> log_sums) {
  const T scale = score_scale<T>(s);
  parallel_for(s.heads * s.context, s.context, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t visible = row % s.context + 1;
      T* w = weights.data() + row * s.context;
      T largest = -std::numeric_limits<T>::infinity();
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] *= scale;
        largest = w[j] > largest ? w[j] : largest;
      }
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] = exponential(w[j] - largest);
      }
      const T sum = lane_sum<T>(visible, [&](std::size_t j) { return w[j]; });
      const T reciprocal = T{1} / sum;
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] *= reciprocal;
      }
      std::fill(w + visible, w + s.context, T{0});
      log_sums[row] = largest + std::log(sum);
    }
  });
}

/// The same weights again, from the scores and the saved logarithms.
template <typename T>
void recompute_softmax_rows(const batch_shape& s, std::span<T> weights, std::span<const T> log_sums) {
  const T scale = score_scale<T>(s);
  parallel_for(s.heads * s.context, s.context, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t visible = row % s.context + 1;
      T* w = weights.data() + row * s.context;
      const T log_sum = log_sums[row];
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] = exponential(w[j] * scale - log_sum);
      }
      std::fill(w + visible, w + s.context, T{0});
    }
  });
}

/// Gradients of weights become gradients of the unscaled scores: w (dw - sum(w dw)) scale.
template <typename T>
void softmax_backward(const batch_shape& s, std::span<const T> weights, std::span<T> d_weights) {
  const T scale = score_scale<T>(s);
  parallel_for(s.heads * s.context, s.context, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t visible = row % s.context + 1;
      const T* w = weights.data() + row * s.context;
      T* dw = d_weights.data() + row * s.context;
      const T along = lane_sum<T>(visible, [&](std::size_t j) { return w[j] * dw[j]; });
      for (std::size_t j = 0; j < visible; ++j) {
        dw[j] = w[j] * (dw[j] - along) * scale;
      }
      std::fill(dw + visible, dw + s.context, T{0});
    }
  });
}

}  // namespace

template <typename T>
void attention_forward(const batch_shape& s, const attention_weights<T>& w, std::span<const T> x, std::span<T> y,
                       const attention_saved<T>& saved, matmul<T>& multiply, scratch memory) {
  const forward_scratch<T> work(s, multiply, memory);
  const head_products heads(s);
  layer_norm_forward(x, w.gain, w.bias, work.normed);
  fill_rows(saved.qkv, w.qkv_bias);
  multiply(work.qkv_layer.forward(), work.normed.data(), w.qkv_weight.data(), saved.qkv.data(), work.products);
  for (std::size_t i = 0; i < s.sequences; ++i) {
    const T* queries = saved.qkv.data() + i * s.context * 3 * s.width;
    const T* keys = queries + s.width;
    const T* values = keys + s.width;
    multiply(heads.scores(), queries, keys, work.weights.data(), work.products);
    softmax_rows(s, work.weights, saved.log_sums.subspan(i * s.heads * s.context, s.heads * s.context));
    multiply(heads.mix(), work.weights.data(), values, saved.mixed.data() + i * s.context * s.width, work.products);
  }
  fill_rows(y, w.out_bias, x);
  multiply(work.out_layer.forward(), saved.mixed.data(), w.out_weight.data(), y.data(), work.products);
}

template <typename T>
void attention_backward(const batch_shape& s, const attention_weights<T>& w, std::span<const T> x,
                        const attention_saved<const T>& saved, std::span<T> gradient, const attention_gradients<T>& d,
                        bool accumulate, matmul<T>& multiply, scratch memory) {
  const backward_scratch<T> work(s, multiply, memory);
  const head_products heads(s);
  start_gradients(accumulate, {d.gain, d.bias, d.qkv_bias, d.out_bias});

  bias_gradient<T>(gradient, d.out_bias);
  multiply(work.out_layer.weight_gradient(accumulate), saved.mixed.data(), gradient.data(), d.out_weight.data(),
           work.products);
  multiply(work.out_layer.input_gradient(), gradient.data(), w.out_weight.data(), work.d_mixed.data(), work.products);

  for (std::size_t i = 0; i < s.sequences; ++i) {
    const T* queries = saved.qkv.data() + i * s.context * 3 * s.width;
    const T* keys = queries + s.width;
    const T* values = keys + s.width;
    T* d_queries = work.d_qkv.data() + i * s.context * 3 * s.width;
    const T* d_mixed = work.d_mixed.data() + i * s.context * s.width;
    multiply(heads.scores(), queries, keys, work.weights.data(), work.products);
    recompute_softmax_rows(s, work.weights, saved.log_sums.subspan(i * s.heads * s.context, s.heads * s.context));
    multiply(heads.value_gradient(), work.weights.data(), d_mixed, d_queries + 2 * s.width, work.products);
    multiply(heads.weight_gradient(), d_mixed, values, work.d_weights.data(), work.products);
    softmax_backward<T>(s, work.weights, work.d_weights);
    multiply(heads.query_gradient(), work.d_weights.data(), keys, d_queries, work.products);
    multiply(heads.key_gradient(), work.d_weights.data(), queries, d_queries + s.width, work.products);
  }

  layer_norm_forward(x, w.gain, w.bias, work.normed);
  bias_gradient<T>(work.d_qkv, d.qkv_bias);
  multiply(work.qkv_layer.weight_gradient(accumulate), work.normed.data(), work.d_qkv.data(), d.qkv_weight.data(),
           work.products);
  const std::span<T> d_normed = work.d_mixed;
  multiply(work.qkv_layer.input_gradient(), work.d_qkv.data(), w.qkv_weight.data(), d_normed.data(), work.products);
  layer_norm_backward(x, w.gain, d_normed, gradient, d.gain, d.bias);
}

template <typename T>
std::size_t attention_forward_scratch(const batch_shape& s, matmul<T>& multiply) {
  scratch memory = scratch::measuring();
  const forward_scratch<T> work(s, multiply, memory);
  return memory.used();
}

template <typename T>
std::size_t attention_backward_scratch(const batch_shape& s, matmul<T>& multiply) {
  scratch memory = scratch::measuring();
  const backward_scratch<T> work(s, multiply, memory);
  return memory.used();
}

#define INSTANTIATE(T)                                                                                                 \
  template void attention_forward(const batch_shape&, const attention_weights<T>&, std::span<const T>, std::span<T>,   \
                                  const attention_saved<T>&, matmul<T>&, scratch);                                     \
  template void attention_backward(const batch_shape&, const attention_weights<T>&, std::span<const T>,                \
                                   const attention_saved<const T>&, std::span<T>, const attention_gradients<T>&, bool, \
                                   matmul<T>&, scratch);                                                               \
  template std::size_t attention_forward_scratch(const batch_shape&, matmul<T>&);                                      \
  template std::size_t attention_backward_scratch(const batch_shape&, matmul<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace train_gpt
