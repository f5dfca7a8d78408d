#include "mlp.hpp"

#include "layer_norm.hpp"
#include "linear.hpp"
#include "math.hpp"
#include "parallel.hpp"

namespace train_gpt {
namespace {

[[nodiscard]] linear up_layer(const batch_shape& s) { return {s.tokens(), s.width, mlp_factor * s.width}; }
[[nodiscard]] linear down_layer(const batch_shape& s) { return {s.tokens(), mlp_factor * s.width, s.width}; }

template <typename T>
void gelu_all(std::span<const T> from, std::span<T> to) {
  parallel_for(from.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      to[i] = gelu(from[i]);
    }
  });
}

template <typename T>
void gelu_backward_all(std::span<const T> from, std::span<T> gradient) {
  parallel_for(from.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      gradient[i] *= gelu_derivative(from[i]);
    }
  });
}

template <typename T>
struct up_forward_scratch {
  std::span<T> normed;  ///< [tokens, width]
  std::span<std::byte> products;

  up_forward_scratch(const batch_shape& s, matmul<T>& multiply, scratch& memory)
      : normed(memory.take<T>(s.tokens() * s.width)),
        products(memory.take<std::byte>(multiply.scratch_bytes({up_layer(s).forward()}))) {}
};

template <typename T>
struct down_forward_scratch {
  std::span<T> activated;  ///< [tokens, 4 width]
  std::span<std::byte> products;

  down_forward_scratch(const batch_shape& s, matmul<T>& multiply, scratch& memory)
      : activated(memory.take<T>(s.tokens() * mlp_factor * s.width)),
        products(memory.take<std::byte>(multiply.scratch_bytes({down_layer(s).forward()}))) {}
};

template <typename T>
struct down_backward_scratch {
  std::span<std::byte> products;

  down_backward_scratch(const batch_shape& s, matmul<T>& multiply, scratch& memory)
      : products(memory.take<std::byte>(
            multiply.scratch_bytes({down_layer(s).input_gradient(), down_layer(s).weight_gradient(false),
                                    down_layer(s).weight_gradient(true)}))) {}
};

template <typename T>
struct up_backward_scratch {
  std::span<T> normed;  ///< [tokens, width]; later its gradient
  std::span<std::byte> products;

  up_backward_scratch(const batch_shape& s, matmul<T>& multiply, scratch& memory)
      : normed(memory.take<T>(s.tokens() * s.width)),
        products(memory.take<std::byte>(multiply.scratch_bytes(
            {up_layer(s).input_gradient(), up_layer(s).weight_gradient(false), up_layer(s).weight_gradient(true)}))) {}
};

template <typename Work, typename T>
[[nodiscard]] std::size_t measure(const batch_shape& s, matmul<T>& multiply) {
  scratch memory = scratch::measuring();
  const Work work(s, multiply, memory);
  return memory.used();
}

}  // namespace

template <typename T>
void mlp_up_forward(const batch_shape& s, const mlp_up_weights<T>& w, std::span<const T> x, std::span<T> hidden,
                    matmul<T>& multiply, scratch memory) {
  const up_forward_scratch<T> work(s, multiply, memory);
  layer_norm_forward(x, w.gain, w.bias, work.normed);
  fill_rows(hidden, w.up_bias);
  multiply(up_layer(s).forward(), work.normed.data(), w.up_weight.data(), hidden.data(), work.products);
}

template <typename T>
void mlp_down_forward(const batch_shape& s, const mlp_down_weights<T>& w, std::span<const T> hidden,
                      std::span<const T> x, std::span<T> y, matmul<T>& multiply, scratch memory) {
  const down_forward_scratch<T> work(s, multiply, memory);
  gelu_all(hidden, work.activated);
  fill_rows(y, w.down_bias, x);
  multiply(down_layer(s).forward(), work.activated.data(), w.down_weight.data(), y.data(), work.products);
}

template <typename T>
void mlp_down_backward(const batch_shape& s, const mlp_down_weights<T>& w, std::span<const T> hidden,
                       std::span<const T> gradient, std::span<T> d_hidden, const mlp_down_gradients<T>& d,
                       bool accumulate, matmul<T>& multiply, scratch memory) {
  const down_backward_scratch<T> work(s, multiply, memory);
  start_gradients(accumulate, {d.down_bias});
  bias_gradient(gradient, d.down_bias);
  const std::span<T> activated = d_hidden;  // holds them until the weight's gradient is done
  gelu_all(hidden, activated);
  multiply(down_layer(s).weight_gradient(accumulate), activated.data(), gradient.data(), d.down_weight.data(),
           work.products);
  multiply(down_layer(s).input_gradient(), gradient.data(), w.down_weight.data(), d_hidden.data(), work.products);
  gelu_backward_all(hidden, d_hidden);
}

template <typename T>
void mlp_up_backward(const batch_shape& s, const mlp_up_weights<T>& w, std::span<const T> x,
                     std::span<const T> d_hidden, std::span<T> gradient, const mlp_up_gradients<T>& d, bool accumulate,
                     matmul<T>& multiply, scratch memory) {
  const up_backward_scratch<T> work(s, multiply, memory);
  start_gradients(accumulate, {d.gain, d.bias, d.up_bias});
  layer_norm_forward(x, w.gain, w.bias, work.normed);
  bias_gradient(d_hidden, d.up_bias);
  multiply(up_layer(s).weight_gradient(accumulate), work.normed.data(), d_hidden.data(), d.up_weight.data(),
           work.products);
  const std::span<T> d_normed = work.normed;
  multiply(up_layer(s).input_gradient(), d_hidden.data(), w.up_weight.data(), d_normed.data(), work.products);
  layer_norm_backward(x, w.gain, d_normed, gradient, d.gain, d.bias);
}

template <typename T>
std::size_t mlp_up_forward_scratch(const batch_shape& s, matmul<T>& multiply) {
  return measure<up_forward_scratch<T>>(s, multiply);
}
template <typename T>
std::size_t mlp_down_forward_scratch(const batch_shape& s, matmul<T>& multiply) {
  return measure<down_forward_scratch<T>>(s, multiply);
}
template <typename T>
std::size_t mlp_down_backward_scratch(const batch_shape& s, matmul<T>& multiply) {
  return measure<down_backward_scratch<T>>(s, multiply);
}
template <typename T>
std::size_t mlp_up_backward_scratch(const batch_shape& s, matmul<T>& multiply) {
  return measure<up_backward_scratch<T>>(s, multiply);
}

#define INSTANTIATE(T)                                                                                                \
  template void mlp_up_forward(const batch_shape&, const mlp_up_weights<T>&, std::span<const T>, std::span<T>,        \
                               matmul<T>&, scratch);                                                                  \
  template void mlp_down_forward(const batch_shape&, const mlp_down_weights<T>&, std::span<const T>,                  \
                                 std::span<const T>, std::span<T>, matmul<T>&, scratch);                              \
  template void mlp_down_backward(const batch_shape&, const mlp_down_weights<T>&, std::span<const T>,                 \
                                  std::span<const T>, std::span<T>, const mlp_down_gradients<T>&, bool, matmul<T>&,   \
                                  scratch);                                                                           \
  template void mlp_up_backward(const batch_shape&, const mlp_up_weights<T>&, std::span<const T>, std::span<const T>, \
                                std::span<T>, const mlp_up_gradients<T>&, bool, matmul<T>&, scratch);                 \
  template std::size_t mlp_up_forward_scratch(const batch_shape&, matmul<T>&);                                        \
  template std::size_t mlp_down_forward_scratch(const batch_shape&, matmul<T>&);                                      \
  template std::size_t mlp_down_backward_scratch(const batch_shape&, matmul<T>&);                                     \
  template std::size_t mlp_up_backward_scratch(const batch_shape&, matmul<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace train_gpt
