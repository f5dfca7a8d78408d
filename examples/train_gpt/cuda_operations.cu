#include <cmath>
#include <mutex>
#include <string>

#include <forebay/base/error.hpp>
#include <forebay/cuda/launch.hpp>

#include "cublas_matmul.hpp"
#include "cuda_operations.hpp"
#include "kernel_bodies.hpp"

namespace train_gpt {
namespace {

using bytes_of_text = std::span<const std::uint8_t>;
using floats = std::span<float>;
using const_floats = std::span<const float>;

float score_scale(const batch_shape& s) { return 1.0F / std::sqrt(static_cast<float>(s.head_width())); }

class on_cuda final : public operations<float> {
 public:
  explicit on_cuda(matmul_precision precision) : multiply_(precision) {}

  void run_on(forebay::stream& on, forebay::unique_function<void()> work) override {
    const std::scoped_lock lock(mutex_);
    stream_ = forebay::native_stream(on);
    work();
  }

  [[nodiscard]] std::size_t scratch_bytes(std::initializer_list<product>) override {
    return cublas_matmul::scratch_bytes;
  }
  void multiply(const product& p, const float* a, const float* b, float* c, std::span<std::byte> scratch) override {
    multiply_(stream_, p, a, b, c, scratch);
  }

  void clear(floats to) override {
    const cudaError_t code = cudaMemsetAsync(to.data(), 0, to.size_bytes(), stream_);
    if (code != cudaSuccess) {
      throw forebay::device_error(std::string("cudaMemsetAsync failed: ") + cudaGetErrorName(code));
    }
  }
  void fill_rows(floats to, const_floats bias, const_floats residual) override {
    elements(to.size(), kernels::fill_row<float>{to.data(), bias.data(), residual.empty() ? nullptr : residual.data(),
                                                 bias.size()});
  }
  void bias_gradient(const_floats dy, floats dbias) override {
    elements(dbias.size(), kernels::add_rows<float>{dy.data(), dy.size() / dbias.size(), dbias.size(), dbias.data()});
  }

  void layer_norm_forward(const_floats x, const_floats gain, const_floats bias, floats y) override {
    rows(x.size() / gain.size(), kernels::norm_row<float>{x.data(), gain.data(), bias.data(), y.data(), gain.size()});
  }
  void layer_norm_backward(const_floats x, const_floats gain, floats dy, floats dx, floats dgain, floats dbias,
                           floats statistics) override {
    const std::size_t width = gain.size();
    const std::size_t count = x.size() / width;
    rows(count, kernels::norm_statistics<float>{x.data(), statistics.data(), width});
    elements(width, kernels::norm_parameters<float>{x.data(), dy.data(), statistics.data(), count, width, dgain.data(),
                                                    dbias.data()});
    rows(count, kernels::norm_input<float>{x.data(), gain.data(), statistics.data(), dy.data(), dx.data(), width});
  }
  [[nodiscard]] std::size_t norm_scratch(std::size_t count) const override { return 2 * count; }

  void gelu(const_floats from, floats to) override {
    elements(to.size(), kernels::gelu_of<float>{from.data(), to.data()});
  }
  void gelu_backward(const_floats from, floats gradient) override {
    elements(gradient.size(), kernels::gelu_gradient<float>{from.data(), gradient.data()});
  }

  void softmax(const batch_shape& s, floats weights, floats log_sums) override {
    rows(s.heads * s.context, kernels::softmax_row<float>{weights.data(), log_sums.data(), s.context, score_scale(s)});
  }
  void softmax_again(const batch_shape& s, floats weights, const_floats log_sums) override {
    elements(weights.size(),
             kernels::softmax_again_element<float>{weights.data(), log_sums.data(), s.context, score_scale(s)});
  }
  void softmax_backward(const batch_shape& s, const_floats weights, floats d_weights) override {
    rows(s.heads * s.context,
         kernels::softmax_gradient<float>{weights.data(), d_weights.data(), s.context, score_scale(s)});
  }

  void embed(const batch_shape& s, bytes_of_text tokens, const_floats token_embedding, const_floats position_embedding,
             floats x) override {
    elements(x.size(), kernels::embed_element<float>{tokens.data(), token_embedding.data(), position_embedding.data(),
                                                     s.context, s.width, x.data()});
  }
  void embed_backward(const batch_shape& s, bytes_of_text tokens, const_floats gradient, floats d_token_embedding,
                      floats d_position_embedding) override {
    elements(s.width, kernels::embed_gradient<float>{tokens.data(), gradient.data(), s.tokens(), s.context, s.width,
                                                     d_token_embedding.data(), d_position_embedding.data()});
  }
  void cross_entropy(const batch_shape& s, bytes_of_text tokens, floats logits, floats losses, float scale) override {
    rows(s.tokens(),
         kernels::token_loss<float>{tokens.data(), logits.data(), losses.data(), s.context, vocabulary, scale});
  }
  void add_losses(const_floats losses, double scale, floats loss) override {
    elements(1, kernels::add_all_losses<float>{losses.data(), losses.size(), scale, loss.data()});
  }

 private:
  template <typename Body>
  void elements(std::size_t count, const Body& body) {
    forebay::launch_elements(stream_, count, body);
  }
  template <typename Body>
  void rows(std::size_t count, const Body& body) {
    forebay::launch_teams(stream_, count, body);
  }

  std::mutex mutex_;  // of the two below, while work is enqueued
  cudaStream_t stream_ = nullptr;
  cublas_matmul multiply_;
};

}  // namespace

std::unique_ptr<operations<float>> cuda_operations(matmul_precision precision) {
  return std::make_unique<on_cuda>(precision);
}

}  // namespace train_gpt
