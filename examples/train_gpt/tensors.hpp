#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forebay/engine/options.hpp>

#include "attention.hpp"

namespace train_gpt {

struct model_shape {
  std::size_t layers = 0;
  std::size_t width = 0;
  std::size_t heads = 0;  ///< divides the width
  std::size_t context = 0;
  std::size_t batch = 0;          ///< sequences of a micro-batch
  std::size_t micro_batches = 1;  ///< their gradients are added before an update

  [[nodiscard]] batch_shape of_batch() const { return {batch, context, width, heads}; }
  /// Bytes of text that a micro-batch needs: each sequence and one byte more, its last target.
  [[nodiscard]] std::size_t token_bytes() const { return batch * (context + 1); }
  /// Tokens trained on per iteration.
  [[nodiscard]] std::size_t tokens() const { return batch * context * micro_batches; }
};

/// Which of the model's tensors: its place in registration order.
using tensor_index = std::size_t;

/// A parameter's first value is normally distributed, or constant where the deviation is 0.
struct initial_value {
  double mean = 0.0;
  double deviation = 0.0;
};

/// What the trainer must know of the parameter with this index beside its tensor.
struct parameter_info {
  initial_value initial;
  bool decay = false;  ///< matrices decay; gains and biases do not
};

/// The tensors of one transformer layer.
struct layer_tensors {
  // Parameters.
  tensor_index attention_gain, attention_bias, qkv_weight, qkv_bias, out_weight, out_bias;
  tensor_index mlp_gain, mlp_bias, up_weight, up_bias, down_weight, down_bias;
  // Activations that the forward steps leave for the backward steps.
  tensor_index in;        ///< [tokens, width]: the residual stream before attention
  tensor_index middle;    ///< [tokens, width]: and before the MLP
  tensor_index qkv;       ///< [tokens, 3 width]
  tensor_index log_sums;  ///< [batch, heads, context]
  tensor_index mixed;     ///< [tokens, width]
  tensor_index hidden;    ///< [tokens, 4 width]
};

/// All tensors of the model, by name: parameters, then their gradients in the same order, then the rest.
class tensor_table {
 public:
  /// \throws forebay::usage_error on an empty shape, or heads that do not divide the width.
  tensor_table(const model_shape& shape, forebay::dtype scalar);

  /// In registration order.
  [[nodiscard]] const std::vector<forebay::tensor_spec>& specs() const { return specs_; }
  /// One for each parameter; parameter i is tensor i, its gradient is `gradient(i)`.
  [[nodiscard]] const std::vector<parameter_info>& parameters() const { return parameters_; }
  [[nodiscard]] tensor_index gradient(tensor_index parameter) const { return parameter + parameters_.size(); }
  /// Elements of all parameters.
  [[nodiscard]] std::uint64_t parameter_elements() const;

  tensor_index token_embedding{};     ///< [vocabulary, width], also the output head
  tensor_index position_embedding{};  ///< [context, width]
  std::vector<layer_tensors> layers;
  tensor_index final_gain{}, final_bias{};
  tensor_index final_in{};           ///< [tokens, width]: the residual stream after the last layer
  tensor_index stream_gradient{};    ///< [tokens, width]: of the residual stream, from the head back to the embedding
  tensor_index d_hidden{};           ///< [tokens, 4 width]: of the current layer's hidden units
  tensor_index loss{};               ///< [1]: the mean cross entropy of the iteration
  std::vector<tensor_index> tokens;  ///< for each micro-batch: u8 [batch, context + 1], set before an iteration

 private:
  tensor_index add(std::string name, std::vector<std::uint64_t> shape, forebay::role role);
  tensor_index add_matrix(std::string name, std::uint64_t rows, std::uint64_t columns, double deviation);
  tensor_index add_vector(std::string name, std::uint64_t elements, double value);
  void add_parameters(const model_shape& shape);
  void add_gradients();
  void add_activations(const model_shape& shape);

  forebay::dtype scalar_;
  std::vector<forebay::tensor_spec> specs_;
  std::vector<parameter_info> parameters_;
};

}  // namespace train_gpt
