#include "mlp.hpp"

#include "linear.hpp"

namespace train_gpt {
namespace {

[[nodiscard]] linear up_layer(const batch_shape& s) { return {s.tokens(), s.width, mlp_factor * s.width}; }
[[nodiscard]] linear down_layer(const batch_shape& s) { return {s.tokens(), mlp_factor * s.width, s.width}; }

template <typename T>
struct up_forward_scratch {
  std::span<T> normed;  ///< [tokens, width]
  std::span<std::byte> products;

  up_forward_scratch(const batch_shape& s, operations<T>& compute, scratch& memory)
      : normed(memory.take<T>(s.tokens() * s.width)),
        products(memory.take<std::byte>(compute.scratch_bytes({up_layer(s).forward()}))) {}
};

template <typename T>
struct down_forward_scratch {
  std::span<T> activated;  ///< [tokens, 4 width]
  std::span<std::byte> products;

  down_forward_scratch(const batch_shape& s, operations<T>& compute, scratch& memory)
      : activated(memory.take<T>(s.tokens() * mlp_factor * s.width)),
        products(memory.take<std::byte>(compute.scratch_bytes({down_layer(s).forward()}))) {}
};

template <typename T>
struct down_backward_scratch {
  std::span<std::byte> products;

  down_backward_scratch(const batch_shape& s, operations<T>& compute, scratch& memory)
      : products(memory.take<std::byte>(
            compute.scratch_bytes({down_layer(s).input_gradient(), down_layer(s).weight_gradient(false),
                                   down_layer(s).weight_gradient(true)}))) {}
};

template <typename T>
struct up_backward_scratch {
  std::span<T> normed;      ///< [tokens, width]; later its gradient
  std::span<T> statistics;  ///< of the norm
  std::span<std::byte> products;

  up_backward_scratch(const batch_shape& s, operations<T>& compute, scratch& memory)
      : normed(memory.take<T>(s.tokens() * s.width)),
        statistics(memory.take<T>(compute.norm_scratch(s.tokens()))),
        products(memory.take<std::byte>(compute.scratch_bytes(
            {up_layer(s).input_gradient(), up_layer(s).weight_gradient(false), up_layer(s).weight_gradient(true)}))) {}
};

template <typename Work, typename T>
[[nodiscard]] std::size_t measure(const batch_shape& s, operations<T>& compute) {
  scratch memory = scratch::measuring();
  const Work work(s, compute, memory);
  return memory.used();
}

}  // namespace

template <typename T>
void mlp_up_forward(const batch_shape& s, const mlp_up_weights<T>& w, std::span<const T> x, std::span<T> hidden,
                    operations<T>& compute, scratch memory) {
  const up_forward_scratch<T> work(s, compute, memory);
  compute.layer_norm_forward(x, w.gain, w.bias, work.normed);
  compute.fill_rows(hidden, w.up_bias);
  compute.multiply(up_layer(s).forward(), work.normed.data(), w.up_weight.data(), hidden.data(), work.products);
}

template <typename T>
void mlp_down_forward(const batch_shape& s, const mlp_down_weights<T>& w, std::span<const T> hidden,
                      std::span<const T> x, std::span<T> y, operations<T>& compute, scratch memory) {
  const down_forward_scratch<T> work(s, compute, memory);
  compute.gelu(hidden, work.activated);
  compute.fill_rows(y, w.down_bias, x);
  compute.multiply(down_layer(s).forward(), work.activated.data(), w.down_weight.data(), y.data(), work.products);
}

template <typename T>
void mlp_down_backward(const batch_shape& s, const mlp_down_weights<T>& w, std::span<const T> hidden,
                       std::span<const T> gradient, std::span<T> d_hidden, const mlp_down_gradients<T>& d,
                       bool accumulate, operations<T>& compute, scratch memory) {
  const down_backward_scratch<T> work(s, compute, memory);
  compute.start_gradients(accumulate, {d.down_bias});
  compute.bias_gradient(gradient, d.down_bias);
  const std::span<T> activated = d_hidden;  // holds them until the weight's gradient is done
  compute.gelu(hidden, activated);
  compute.multiply(down_layer(s).weight_gradient(accumulate), activated.data(), gradient.data(), d.down_weight.data(),
                   work.products);
  compute.multiply(down_layer(s).input_gradient(), gradient.data(), w.down_weight.data(), d_hidden.data(),
                   work.products);
  compute.gelu_backward(hidden, d_hidden);
}

template <typename T>
void mlp_up_backward(const batch_shape& s, const mlp_up_weights<T>& w, std::span<const T> x,
                     std::span<const T> d_hidden, std::span<T> gradient, const mlp_up_gradients<T>& d, bool accumulate,
                     operations<T>& compute, scratch memory) {
  const up_backward_scratch<T> work(s, compute, memory);
  compute.start_gradients(accumulate, {d.gain, d.bias, d.up_bias});
  compute.layer_norm_forward(x, w.gain, w.bias, work.normed);
  compute.bias_gradient(d_hidden, d.up_bias);
  compute.multiply(up_layer(s).weight_gradient(accumulate), work.normed.data(), d_hidden.data(), d.up_weight.data(),
                   work.products);
  const std::span<T> d_normed = work.normed;
  compute.multiply(up_layer(s).input_gradient(), d_hidden.data(), w.up_weight.data(), d_normed.data(), work.products);
  compute.layer_norm_backward(x, w.gain, d_normed, gradient, d.gain, d.bias, work.statistics);
}

template <typename T>
std::size_t mlp_up_forward_scratch(const batch_shape& s, operations<T>& compute) {
  return measure<up_forward_scratch<T>>(s, compute);
}
template <typename T>
std::size_t mlp_down_forward_scratch(const batch_shape& s, operations<T>& compute) {
  return measure<down_forward_scratch<T>>(s, compute);
}
template <typename T>
std::size_t mlp_down_backward_scratch(const batch_shape& s, operations<T>& compute) {
  return measure<down_backward_scratch<T>>(s, compute);
}
template <typename T>
std::size_t mlp_up_backward_scratch(const batch_shape& s, operations<T>& compute) {
  return measure<up_backward_scratch<T>>(s, compute);
}

#define INSTANTIATE(T)                                                                                                \
  template void mlp_up_forward(const batch_shape&, const mlp_up_weights<T>&, std::span<const T>, std::span<T>,        \
                               operations<T>&, scratch);                                                              \
  template void mlp_down_forward(const batch_shape&, const mlp_down_weights<T>&, std::span<const T>,                  \
                                 std::span<const T>, std::span<T>, operations<T>&, scratch);                          \
  template void mlp_down_backward(const batch_shape&, const mlp_down_weights<T>&, std::span<const T>,                 \
                                  std::span<const T>, std::span<T>, const mlp_down_gradients<T>&, bool,               \
                                  operations<T>&, scratch);                                                           \
  template void mlp_up_backward(const batch_shape&, const mlp_up_weights<T>&, std::span<const T>, std::span<const T>, \
                                std::span<T>, const mlp_up_gradients<T>&, bool, operations<T>&, scratch);             \
  template std::size_t mlp_up_forward_scratch(const batch_shape&, operations<T>&);                                    \
  template std::size_t mlp_down_forward_scratch(const batch_shape&, operations<T>&);                                  \
  template std::size_t mlp_down_backward_scratch(const batch_shape&, operations<T>&);                                 \
  template std::size_t mlp_up_backward_scratch(const batch_shape&, operations<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace train_gpt
