#include "embedding.hpp"

#include "matmul.hpp"

namespace train_gpt {
namespace {

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
  std::span<T> normed;      ///< [tokens, width]
  std::span<T> d_normed;    ///< [tokens, width]
  std::span<T> logits;      ///< [tokens, vocabulary]; later their gradient
  std::span<T> losses;      ///< [tokens]
  std::span<T> statistics;  ///< of the norm
  std::span<std::byte> products;

  scratch_of_head(const batch_shape& s, operations<T>& compute, scratch& memory) : layer{s.tokens(), s.width} {
    normed = memory.take<T>(s.tokens() * s.width);
    d_normed = memory.take<T>(s.tokens() * s.width);
    logits = memory.take<T>(s.tokens() * vocabulary);
    losses = memory.take<T>(s.tokens());
    statistics = memory.take<T>(compute.norm_scratch(s.tokens()));
    products = memory.take<std::byte>(compute.scratch_bytes(
        {layer.logits(), layer.input_gradient(), layer.weight_gradient(false), layer.weight_gradient(true)}));
  }
};

}  // namespace

template <typename T>
void embedding_forward(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> token_embedding,
                       std::span<const T> position_embedding, std::span<T> x, operations<T>& compute) {
  compute.embed(s, tokens, token_embedding, position_embedding, x);
}

template <typename T>
void embedding_backward(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> gradient,
                        std::span<T> d_token_embedding, std::span<T> d_position_embedding, bool accumulate,
                        operations<T>& compute) {
  compute.start_gradients(accumulate, {d_position_embedding});
  compute.embed_backward(s, tokens, gradient, d_token_embedding, d_position_embedding);
}

template <typename T>
void head_forward_backward(const batch_shape& s, std::span<const std::uint8_t> tokens, const head_weights<T>& w,
                           std::span<const T> x, std::span<T> gradient, std::span<T> loss, const head_gradients<T>& d,
                           double scale, bool accumulate, operations<T>& compute, scratch memory) {
  const scratch_of_head<T> work(s, compute, memory);
  compute.start_gradients(accumulate, {d.gain, d.bias, loss});
  compute.layer_norm_forward(x, w.gain, w.bias, work.normed);
  compute.multiply(work.layer.logits(), work.normed.data(), w.token_embedding.data(), work.logits.data(),
                   work.products);
  compute.cross_entropy(s, tokens, work.logits, work.losses, static_cast<T>(scale));

  compute.add_losses(work.losses, scale, loss);

  compute.multiply(work.layer.weight_gradient(accumulate), work.logits.data(), work.normed.data(),
                   d.token_embedding.data(), work.products);
  compute.multiply(work.layer.input_gradient(), work.logits.data(), w.token_embedding.data(), work.d_normed.data(),
                   work.products);
  compute.clear(gradient);
  compute.layer_norm_backward(x, w.gain, work.d_normed, gradient, d.gain, d.bias, work.statistics);
}

template <typename T>
std::size_t head_scratch(const batch_shape& s, operations<T>& compute) {
  scratch memory = scratch::measuring();
  const scratch_of_head<T> work(s, compute, memory);
  return memory.used();
}

#define INSTANTIATE(T)                                                                                           \
  template void embedding_forward(const batch_shape&, std::span<const std::uint8_t>, std::span<const T>,         \
                                  std::span<const T>, std::span<T>, operations<T>&);                             \
  template void embedding_backward(const batch_shape&, std::span<const std::uint8_t>, std::span<const T>,        \
                                   std::span<T>, std::span<T>, bool, operations<T>&);                            \
  template void head_forward_backward(const batch_shape&, std::span<const std::uint8_t>, const head_weights<T>&, \
                                      std::span<const T>, std::span<T>, std::span<T>, const head_gradients<T>&,  \
                                      double, bool, operations<T>&, scratch);                                    \
  template std::size_t head_scratch(const batch_shape&, operations<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace train_gpt
