#include "tensors.hpp"

#include <fmt/format.h>

#include <cmath>
#include <forebay/base/error.hpp>
#include <utility>

#include "embedding.hpp"
#include "mlp.hpp"

namespace train_gpt {
namespace {

void check(const model_shape& s) {
  if (s.layers == 0 || s.width == 0 || s.heads == 0 || s.context == 0 || s.batch == 0 || s.micro_batches == 0) {
    throw forebay::usage_error("layers, width, heads, context, batch and micro-batches must all be at least 1");
  }
  if (s.width % s.heads != 0) {
    throw forebay::usage_error(fmt::format("{} heads do not divide a width of {}", s.heads, s.width));
  }
}

}  // namespace

tensor_table::tensor_table(const model_shape& shape, forebay::dtype scalar) : scalar_(scalar) {
  check(shape);
  layers.resize(shape.layers);
  add_parameters(shape);
  add_gradients();
  add_activations(shape);
}

std::uint64_t tensor_table::parameter_elements() const {
  std::uint64_t sum = 0;
  for (tensor_index i = 0; i < parameters_.size(); ++i) {
    sum += specs_[i].elements();
  }
  return sum;
}

tensor_index tensor_table::add(std::string name, std::vector<std::uint64_t> shape, forebay::role role) {
  specs_.push_back({std::move(name), scalar_, std::move(shape), role});
  return specs_.size() - 1;
}

tensor_index tensor_table::add_matrix(std::string name, std::uint64_t rows, std::uint64_t columns, double deviation) {
  parameters_.push_back({{0.0, deviation}, true});
  return add(std::move(name), {rows, columns}, forebay::role::parameter);
}

tensor_index tensor_table::add_vector(std::string name, std::uint64_t elements, double value) {
  parameters_.push_back({{value, 0.0}, false});
  return add(std::move(name), {elements}, forebay::role::parameter);
}

void tensor_table::add_parameters(const model_shape& shape) {
  constexpr double deviation = 0.02;
  // Each layer adds to the residual stream twice: the sum keeps its scale.
  const double residual_deviation = deviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
  const std::uint64_t width = shape.width;
  token_embedding = add_matrix("token_embedding", vocabulary, width, deviation);
  position_embedding = add_matrix("position_embedding", shape.context, width, deviation);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto name = [l](const char* rest) { return fmt::format("h.{}.{}", l, rest); };
    layer_tensors& t = layers[l];
    t.attention_gain = add_vector(name("attention.norm.gain"), width, 1.0);
    t.attention_bias = add_vector(name("attention.norm.bias"), width, 0.0);
    t.qkv_weight = add_matrix(name("attention.qkv.weight"), width, 3 * width, deviation);
    t.qkv_bias = add_vector(name("attention.qkv.bias"), 3 * width, 0.0);
    t.out_weight = add_matrix(name("attention.out.weight"), width, width, residual_deviation);
    t.out_bias = add_vector(name("attention.out.bias"), width, 0.0);
    t.mlp_gain = add_vector(name("mlp.norm.gain"), width, 1.0);
    t.mlp_bias = add_vector(name("mlp.norm.bias"), width, 0.0);
    t.up_weight = add_matrix(name("mlp.up.weight"), width, mlp_factor * width, deviation);
    t.up_bias = add_vector(name("mlp.up.bias"), mlp_factor * width, 0.0);
    t.down_weight = add_matrix(name("mlp.down.weight"), mlp_factor * width, width, residual_deviation);
    t.down_bias = add_vector(name("mlp.down.bias"), width, 0.0);
  }
  final_gain = add_vector("final.norm.gain", width, 1.0);
  final_bias = add_vector("final.norm.bias", width, 0.0);
}

void tensor_table::add_gradients() {
  for (tensor_index i = 0; i < parameters_.size(); ++i) {
    add(specs_[i].name + ".gradient", specs_[i].shape, forebay::role::gradient);
  }
}

void tensor_table::add_activations(const model_shape& shape) {
  const std::uint64_t width = shape.width;
  const std::uint64_t rows = shape.of_batch().tokens();
  const auto activation = [this](std::string name, std::vector<std::uint64_t> extents) {
    return add(std::move(name), std::move(extents), forebay::role::activation);
  };
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto name = [l](const char* rest) { return fmt::format("h.{}.{}", l, rest); };
    layer_tensors& t = layers[l];
    t.in = activation(name("in"), {rows, width});
    t.middle = activation(name("middle"), {rows, width});
    t.qkv = activation(name("attention.qkv"), {rows, 3 * width});
    t.log_sums = activation(name("attention.log_sums"), {shape.batch, shape.heads, shape.context});
    t.mixed = activation(name("attention.mixed"), {rows, width});
    t.hidden = activation(name("mlp.hidden"), {rows, mlp_factor * width});
  }
  final_in = activation("final.in", {rows, width});
  stream_gradient = activation("stream.gradient", {rows, width});
  d_hidden = activation("mlp.hidden.gradient", {rows, mlp_factor * width});
  loss = add("loss", {1}, forebay::role::buffer);
  for (std::size_t i = 0; i < shape.micro_batches; ++i) {
    tokens.push_back(add(fmt::format("tokens.{}", i), {shape.batch, shape.context + 1}, forebay::role::buffer));
    specs_.back().type = forebay::dtype::u8;
  }
}

}  // namespace train_gpt
