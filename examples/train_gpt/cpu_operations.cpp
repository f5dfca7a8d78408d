#include <algorithm>
#include <utility>

#include "cpu_loops.hpp"
#include "layer_norm.hpp"
#include "operations.hpp"

namespace train_gpt {
namespace {

using bytes_of_text = std::span<const std::uint8_t>;

template <typename T>
class on_cpu final : public operations<T> {
 public:
  void run_on(forebay::stream& on, forebay::unique_function<void()> work) override {
    on.launch([work = std::move(work)]() mutable {
      prepare_compute_thread();
      work();
    });
  }

  [[nodiscard]] std::size_t scratch_bytes(std::initializer_list<product> products) override {
    return multiply_.scratch_bytes(products);
  }
  void multiply(const product& p, const T* a, const T* b, T* c, std::span<std::byte> scratch) override {
    multiply_(p, a, b, c, scratch);
  }

  void clear(std::span<T> to) override { std::fill(to.begin(), to.end(), T{0}); }
  void fill_rows(std::span<T> to, std::span<const T> bias, std::span<const T> residual) override {
    if (residual.empty()) {
      train_gpt::fill_rows(to, bias);
    } else {
      train_gpt::fill_rows(to, bias, residual);
    }
  }
  void bias_gradient(std::span<const T> dy, std::span<T> dbias) override { train_gpt::bias_gradient(dy, dbias); }

  void layer_norm_forward(std::span<const T> x, std::span<const T> gain, std::span<const T> bias,
                          std::span<T> y) override {
    train_gpt::layer_norm_forward(x, gain, bias, y);
  }
  void layer_norm_backward(std::span<const T> x, std::span<const T> gain, std::span<T> dy, std::span<T> dx,
                           std::span<T> dgain, std::span<T> dbias, std::span<T> /*statistics*/) override {
    train_gpt::layer_norm_backward(x, gain, dy, dx, dgain, dbias);
  }
  [[nodiscard]] std::size_t norm_scratch(std::size_t /*rows*/) const override { return 0; }

  void gelu(std::span<const T> from, std::span<T> to) override { gelu_all(from, to); }
  void gelu_backward(std::span<const T> from, std::span<T> gradient) override { gelu_backward_all(from, gradient); }

  void softmax(const batch_shape& s, std::span<T> weights, std::span<T> log_sums) override {
    softmax_rows(s, weights, log_sums);
  }
  void softmax_again(const batch_shape& s, std::span<T> weights, std::span<const T> log_sums) override {
    softmax_rows_again(s, weights, log_sums);
  }
  void softmax_backward(const batch_shape& s, std::span<const T> weights, std::span<T> d_weights) override {
    softmax_rows_backward(s, weights, d_weights);
  }

  void embed(const batch_shape& s, bytes_of_text tokens, std::span<const T> token_embedding,
             std::span<const T> position_embedding, std::span<T> x) override {
    embed_tokens(s, tokens, token_embedding, position_embedding, x);
  }
  void embed_backward(const batch_shape& s, bytes_of_text tokens, std::span<const T> gradient,
                      std::span<T> d_token_embedding, std::span<T> d_position_embedding) override {
    embed_tokens_backward(s, tokens, gradient, d_token_embedding, d_position_embedding);
  }
  void cross_entropy(const batch_shape& s, bytes_of_text tokens, std::span<T> logits, std::span<T> losses,
                     T scale) override {
    cross_entropy_of(s, tokens, logits, losses, scale);
  }
  void add_losses(std::span<const T> losses, double scale, std::span<T> loss) override {
    double sum = 0.0;
    for (const T token_loss : losses) {
      sum += static_cast<double>(token_loss);
    }
    loss[0] += static_cast<T>(sum * scale);
  }

 private:
  matmul<T> multiply_;
};

}  // namespace

template <typename T>
std::unique_ptr<operations<T>> cpu_operations() {
  return std::make_unique<on_cpu<T>>();
}

template std::unique_ptr<operations<float>> cpu_operations();
template std::unique_ptr<operations<double>> cpu_operations();

}  // namespace train_gpt
