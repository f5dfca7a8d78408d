#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include <forebay/base/function.hpp>
#include <forebay/device/device.hpp>

#include "matmul.hpp"

namespace train_gpt {

/// The sizes that the steps of one micro-batch work with.
struct batch_shape {
  std::size_t sequences = 0;
  std::size_t context = 0;  ///< tokens of a sequence
  std::size_t width = 0;
  std::size_t heads = 0;  ///< divides the width

  [[nodiscard]] std::size_t tokens() const { return sequences * context; }
  [[nodiscard]] std::size_t head_width() const { return width / heads; }
};

/// Text is bytes.
inline constexpr std::size_t vocabulary = 256;

/// How a GPU multiplies fp32 matrices; sums are fp32.
enum class matmul_precision : std::uint8_t {
  fp32,
  tf32,  ///< factors rounded to 10 bits
  bf16   ///< factors rounded to 7 bits
};

/// All that the model computes with, on the CPU or on a GPU. Each call does its work, or enqueues it behind that of the
/// calls before; the spans are memory of where the work runs. Matrices are row-major without gaps, products excepted.
/// Nothing depends on addresses (64-byte aligned) or on the number of threads.
template <typename T>
class operations {
 public:
  operations() = default;
  operations(const operations&) = delete;
  operations& operator=(const operations&) = delete;
  virtual ~operations() = default;

  /// Runs `work`, whose calls of these operations belong to `on`, in the order of that stream. Thread-safe.
  virtual void run_on(forebay::stream& on, forebay::unique_function<void()> work) = 0;

  /// The most scratch bytes that any of these products needs.
  [[nodiscard]] virtual std::size_t scratch_bytes(std::initializer_list<product> products) = 0;
  virtual void multiply(const product& p, const T* a, const T* b, T* c, std::span<std::byte> scratch) = 0;

  virtual void clear(std::span<T> to) = 0;
  /// Every row of `to` becomes the bias, plus that row of the residual where there is one.
  virtual void fill_rows(std::span<T> to, std::span<const T> bias, std::span<const T> residual = {}) = 0;
  /// Adds the rows of `dy`, in order, to the bias's gradient.
  virtual void bias_gradient(std::span<const T> dy, std::span<T> dbias) = 0;

  /// y = normalised(x) * gain + bias for each row of `gain.size()` elements.
  virtual void layer_norm_forward(std::span<const T> x, std::span<const T> gain, std::span<const T> bias,
                                  std::span<T> y) = 0;
  /// Adds the gradient of x to `dx`, and those of gain and bias to `dgain` and `dbias`. `dy` is overwritten.
  /// `statistics` has `norm_scratch(rows)` elements.
  virtual void layer_norm_backward(std::span<const T> x, std::span<const T> gain, std::span<T> dy, std::span<T> dx,
                                   std::span<T> dgain, std::span<T> dbias, std::span<T> statistics) = 0;
  [[nodiscard]] virtual std::size_t norm_scratch(std::size_t rows) const = 0;

  virtual void gelu(std::span<const T> from, std::span<T> to) = 0;
  /// Multiplies the gradient by the derivative at `from`.
  virtual void gelu_backward(std::span<const T> from, std::span<T> gradient) = 0;

  // Attention of one sequence: [heads, context, context], causal.
  /// Scores become softmax weights; `log_sums[row]` becomes the logarithm of the sum of exponentials.
  virtual void softmax(const batch_shape& s, std::span<T> weights, std::span<T> log_sums) = 0;
  /// The same weights again, from the scores and the saved logarithms.
  virtual void softmax_again(const batch_shape& s, std::span<T> weights, std::span<const T> log_sums) = 0;
  /// Gradients of weights become gradients of the unscaled scores: w (dw - sum(w dw)) scale.
  virtual void softmax_backward(const batch_shape& s, std::span<const T> weights, std::span<T> d_weights) = 0;

  // `tokens` is [sequences, context + 1] bytes: the input of position i is byte i, its target byte i + 1.
  /// x[token] = token_embedding[byte] + position_embedding[position].
  virtual void embed(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> token_embedding,
                     std::span<const T> position_embedding, std::span<T> x) = 0;
  /// Adds each token's gradient to both embeddings' rows, tokens in order.
  virtual void embed_backward(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> gradient,
                              std::span<T> d_token_embedding, std::span<T> d_position_embedding) = 0;
  /// Logits become the gradient of `scale` times the cross entropy; the cross entropy of each token goes to `losses`.
  virtual void cross_entropy(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<T> logits,
                             std::span<T> losses, T scale) = 0;
  /// Adds the sum of the losses, in order and in double, times `scale`.
  virtual void add_losses(std::span<const T> losses, double scale, std::span<T> loss) = 0;

  /// The first micro-batch finds undefined gradients, the later ones add to them. Products know this by themselves
  /// (`weight_gradient`); what is summed by other operations starts from zero here.
  void start_gradients(bool accumulate, std::initializer_list<std::span<T>> gradients) {
    if (!accumulate) {
      for (const std::span<T>& gradient : gradients) {
        clear(gradient);
      }
    }
  }
};

/// On the calling thread and its team. `float`: oneDNN multiplies; `double`: plain loops, the reference for tests.
template <typename T>
[[nodiscard]] std::unique_ptr<operations<T>> cpu_operations();

}  // namespace train_gpt
