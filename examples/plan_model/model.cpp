#include "model.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace plan_model {
namespace {

[[nodiscard]] std::uint64_t kv_width(const model_shape& m) { return m.width / m.heads * m.kv_heads; }

[[nodiscard]] std::uint64_t norm_parameters(const model_shape& m) {
  return m.kind == family::gpt ? 2 * m.width : m.width;
}

[[nodiscard]] block attention(const model_shape& m, std::uint64_t layer) {
  const std::uint64_t h = m.width;
  const std::uint64_t kv = kv_width(m);
  const std::uint64_t matrices = 2 * h * h + 2 * h * kv;
  block b;
  b.name = fmt::format("layer {} attention", layer);
  b.parameters = matrices + norm_parameters(m) + (m.kind == family::gpt ? 2 * h + 2 * kv : 0);
  b.forward_flops = 2.0 * static_cast<double>(matrices) + 4.0 * static_cast<double>(m.context * h);
  b.saved = 3 * h + 2 * kv;  // normed input; query, key, value; what attention gives
  b.widest = h + 2 * kv;
  return b;
}

[[nodiscard]] block mlp(const model_shape& m, std::uint64_t layer) {
  const bool gated = m.kind == family::llama;
  const std::uint64_t matrices = (gated ? 3 : 2) * m.width * m.mlp_width;
  block b;
  b.name = fmt::format("layer {} MLP", layer);
  b.parameters = matrices + norm_parameters(m) + (gated ? 0 : m.width + m.mlp_width);
  b.forward_flops = 2.0 * static_cast<double>(matrices);
  b.saved = m.width + (gated ? 3 : 2) * m.mlp_width;  // normed input; before and after the activation, and the gate
  b.widest = (gated ? 2 : 1) * m.mlp_width;
  return b;
}

}  // namespace

const std::vector<model_shape>& presets() {
  static const std::vector<model_shape> all{
      {"7B", family::llama, 32, 4096, 32, 32, 11008, 32000, 4096},
      {"13B", family::llama, 40, 5120, 40, 40, 13824, 32000, 4096},
      {"70B", family::llama, 80, 8192, 64, 8, 28672, 32000, 4096},
      {"175B", family::gpt, 96, 12288, 96, 96, 49152, 50257, 2048},
      {"405B", family::llama, 126, 16384, 128, 8, 53248, 128256, 8192},
      {"1T", family::gpt, 128, 25600, 160, 160, 102400, 51200, 2048},
  };
  return all;
}

std::vector<block> half_layers(const model_shape& m) {
  std::vector<block> all;
  for (std::uint64_t layer = 0; layer < m.layers; ++layer) {
    all.push_back(attention(m, layer));
    all.push_back(mlp(m, layer));
  }
  return all;
}

block embedding(const model_shape& m) {
  block b;
  b.name = "embedding";
  b.parameters = m.vocabulary * m.width;
  if (tied(m)) {
    b.parameters += m.context * m.width + norm_parameters(m);
  }
  return b;
}

block output(const model_shape& m) {
  block b;
  b.name = "output";
  b.parameters = tied(m) ? 0 : m.vocabulary * m.width + norm_parameters(m);
  b.forward_flops = 2.0 * static_cast<double>(m.vocabulary * m.width);
  b.widest = m.vocabulary;
  return b;
}

std::uint64_t parameters(const model_shape& m) {
  return embedding(m).parameters + output(m).parameters +
         m.layers * (attention(m, 0).parameters + mlp(m, 0).parameters);
}

double training_flops(const model_shape& m) {
  const double layer = attention(m, 0).forward_flops + mlp(m, 0).forward_flops;
  return 3.0 * (static_cast<double>(m.layers) * layer + output(m).forward_flops);
}

}  // namespace plan_model
