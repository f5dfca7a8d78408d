#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plan_model {

/// What a layer is made of.
enum class family : std::uint8_t {
  gpt,   ///< biases, two MLP matrices, learned positions, one matrix for embedding and output
  llama  ///< no biases, a gated MLP of three matrices, rotary positions, an output matrix of its own
};

/// A decoder-only transformer. Its attention never stores a context x context matrix.
struct model_shape {
  std::string name{};
  family kind = family::gpt;
  std::uint64_t layers = 0;
  std::uint64_t width = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;   ///< that keys and values have; divides `heads`
  std::uint64_t mlp_width = 0;  ///< of the MLP's hidden layer
  std::uint64_t vocabulary = 0;
  std::uint64_t context = 0;  ///< tokens of a sequence
};

/// "7B", "13B", "70B" (Llama 2), "175B" (GPT-3), "405B" (Llama 3.1), "1T" (Megatron-LM), as published.
[[nodiscard]] const std::vector<model_shape>& presets();

/// A part of the model that is one step forward and one step backward. Elements and FLOPs are per token.
struct block {
  std::string name{};
  std::uint64_t parameters = 0;
  double forward_flops = 0.0;
  std::uint64_t saved = 0;   ///< elements that the backward step needs, beside the block's input
  std::uint64_t widest = 0;  ///< elements of the largest temporary
};

/// Everything between the embedding and the output: attention, MLP, attention, MLP, ... in the model's order.
[[nodiscard]] std::vector<block> half_layers(const model_shape& m);
/// The embedding; with `family::gpt` the final norm is counted here too, so that the output has nothing of its own.
[[nodiscard]] block embedding(const model_shape& m);
/// The last norm and the product with the vocabulary. Its largest temporary is the logits.
[[nodiscard]] block output(const model_shape& m);
/// The output multiplies by the embedding's matrix.
[[nodiscard]] constexpr bool tied(const model_shape& m) { return m.kind == family::gpt; }

[[nodiscard]] std::uint64_t parameters(const model_shape& m);
/// Of one token, forward and backward, nothing recomputed: what "model FLOPs utilisation" counts (attention in full,
/// as if nothing were masked).
[[nodiscard]] double training_flops(const model_shape& m);

}  // namespace plan_model
