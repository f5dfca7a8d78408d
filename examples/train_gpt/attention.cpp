#include "attention.hpp"

#include "linear.hpp"

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

  forward_scratch(const batch_shape& s, operations<T>& compute, scratch& memory)
      : qkv_layer{s.tokens(), s.width, 3 * s.width}, out_layer{s.tokens(), s.width, s.width} {
    const head_products heads(s);
    normed = memory.take<T>(s.tokens() * s.width);
    weights = memory.take<T>(s.heads * s.context * s.context);
    products = memory.take<std::byte>(
        compute.scratch_bytes({qkv_layer.forward(), out_layer.forward(), heads.scores(), heads.mix()}));
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
  std::span<T> statistics;  ///< of the norm
  std::span<std::byte> products;

  backward_scratch(const batch_shape& s, operations<T>& compute, scratch& memory)
      : qkv_layer{s.tokens(), s.width, 3 * s.width}, out_layer{s.tokens(), s.width, s.width} {
    const head_products heads(s);
    normed = memory.take<T>(s.tokens() * s.width);
    d_mixed = memory.take<T>(s.tokens() * s.width);
    d_qkv = memory.take<T>(s.tokens() * 3 * s.width);
    weights = memory.take<T>(s.heads * s.context * s.context);
    d_weights = memory.take<T>(s.heads * s.context * s.context);
    statistics = memory.take<T>(compute.norm_scratch(s.tokens()));
    products = memory.take<std::byte>(compute.scratch_bytes(
        {out_layer.input_gradient(), out_layer.weight_gradient(false), out_layer.weight_gradient(true),
         qkv_layer.input_gradient(), qkv_layer.weight_gradient(false), qkv_layer.weight_gradient(true), heads.scores(),
         heads.weight_gradient(), heads.value_gradient(), heads.query_gradient(), heads.key_gradient()}));
  }
};

}  // namespace

template <typename T>
void attention_forward(const batch_shape& s, const attention_weights<T>& w, std::span<const T> x, std::span<T> y,
                       const attention_saved<T>& saved, operations<T>& compute, scratch memory) {
  const forward_scratch<T> work(s, compute, memory);
  const head_products heads(s);
  compute.layer_norm_forward(x, w.gain, w.bias, work.normed);
  compute.fill_rows(saved.qkv, w.qkv_bias);
  compute.multiply(work.qkv_layer.forward(), work.normed.data(), w.qkv_weight.data(), saved.qkv.data(), work.products);
  for (std::size_t i = 0; i < s.sequences; ++i) {
    const T* queries = saved.qkv.data() + i * s.context * 3 * s.width;
    const T* keys = queries + s.width;
    const T* values = keys + s.width;
    compute.multiply(heads.scores(), queries, keys, work.weights.data(), work.products);
    compute.softmax(s, work.weights, saved.log_sums.subspan(i * s.heads * s.context, s.heads * s.context));
    compute.multiply(heads.mix(), work.weights.data(), values, saved.mixed.data() + i * s.context * s.width,
                     work.products);
  }
  compute.fill_rows(y, w.out_bias, x);
  compute.multiply(work.out_layer.forward(), saved.mixed.data(), w.out_weight.data(), y.data(), work.products);
}

template <typename T>
void attention_backward(const batch_shape& s, const attention_weights<T>& w, std::span<const T> x,
                        const attention_saved<const T>& saved, std::span<T> gradient, const attention_gradients<T>& d,
                        bool accumulate, operations<T>& compute, scratch memory) {
  const backward_scratch<T> work(s, compute, memory);
  const head_products heads(s);
  compute.start_gradients(accumulate, {d.gain, d.bias, d.qkv_bias, d.out_bias});

  compute.bias_gradient(gradient, d.out_bias);
  compute.multiply(work.out_layer.weight_gradient(accumulate), saved.mixed.data(), gradient.data(), d.out_weight.data(),
                   work.products);
  compute.multiply(work.out_layer.input_gradient(), gradient.data(), w.out_weight.data(), work.d_mixed.data(),
                   work.products);

  for (std::size_t i = 0; i < s.sequences; ++i) {
    const T* queries = saved.qkv.data() + i * s.context * 3 * s.width;
    const T* keys = queries + s.width;
    const T* values = keys + s.width;
    T* d_queries = work.d_qkv.data() + i * s.context * 3 * s.width;
    const T* d_mixed = work.d_mixed.data() + i * s.context * s.width;
    compute.multiply(heads.scores(), queries, keys, work.weights.data(), work.products);
    compute.softmax_again(s, work.weights, saved.log_sums.subspan(i * s.heads * s.context, s.heads * s.context));
    compute.multiply(heads.value_gradient(), work.weights.data(), d_mixed, d_queries + 2 * s.width, work.products);
    compute.multiply(heads.weight_gradient(), d_mixed, values, work.d_weights.data(), work.products);
    compute.softmax_backward(s, work.weights, work.d_weights);
    compute.multiply(heads.query_gradient(), work.d_weights.data(), keys, d_queries, work.products);
    compute.multiply(heads.key_gradient(), work.d_weights.data(), queries, d_queries + s.width, work.products);
  }

  compute.layer_norm_forward(x, w.gain, w.bias, work.normed);
  compute.bias_gradient(work.d_qkv, d.qkv_bias);
  compute.multiply(work.qkv_layer.weight_gradient(accumulate), work.normed.data(), work.d_qkv.data(),
                   d.qkv_weight.data(), work.products);
  const std::span<T> d_normed = work.d_mixed;
  compute.multiply(work.qkv_layer.input_gradient(), work.d_qkv.data(), w.qkv_weight.data(), d_normed.data(),
                   work.products);
  compute.layer_norm_backward(x, w.gain, d_normed, gradient, d.gain, d.bias, work.statistics);
}

template <typename T>
std::size_t attention_forward_scratch(const batch_shape& s, operations<T>& compute) {
  scratch memory = scratch::measuring();
  const forward_scratch<T> work(s, compute, memory);
  return memory.used();
}

template <typename T>
std::size_t attention_backward_scratch(const batch_shape& s, operations<T>& compute) {
  scratch memory = scratch::measuring();
  const backward_scratch<T> work(s, compute, memory);
  return memory.used();
}

#define INSTANTIATE(T)                                                                                                 \
  template void attention_forward(const batch_shape&, const attention_weights<T>&, std::span<const T>, std::span<T>,   \
                                  const attention_saved<T>&, operations<T>&, scratch);                                 \
  template void attention_backward(const batch_shape&, const attention_weights<T>&, std::span<const T>,                \
                                   const attention_saved<const T>&, std::span<T>, const attention_gradients<T>&, bool, \
                                   operations<T>&, scratch);                                                           \
  template std::size_t attention_forward_scratch(const batch_shape&, operations<T>&);                                  \
  template std::size_t attention_backward_scratch(const batch_shape&, operations<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace train_gpt
