#include "model.hpp"

#include <fmt/format.h>

#include <forebay/base/dtype.hpp>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "attention.hpp"
#include "embedding.hpp"
#include "mlp.hpp"

namespace train_gpt {
namespace {

using forebay::uses;

[[nodiscard]] model_access reads(tensor_index t) { return {t, uses::read}; }
[[nodiscard]] model_access writes(tensor_index t) { return {t, uses::write}; }
[[nodiscard]] model_access creates(tensor_index t) { return {t, uses::create}; }
[[nodiscard]] model_access consumes(tensor_index t) { return {t, uses::read | uses::free}; }

/// The accesses of a backward step: what it reads and changes, and the gradients of the parameters that it sets (first
/// micro-batch) or adds to.
[[nodiscard]] std::vector<model_access> with_gradients(std::vector<model_access> accesses, const tensor_table& tensors,
                                                       std::initializer_list<tensor_index> parameters,
                                                       bool accumulate) {
  for (const tensor_index p : parameters) {
    const tensor_index gradient = tensors.gradient(p);
    accesses.push_back(accumulate ? writes(gradient) : creates(gradient));
  }
  return accesses;
}

// Backward steps declare all parameters of their part, biases too, though they need not look at those: tensors with the
// same accesses share a block, and one block is better than a second small one.

template <typename T>
[[nodiscard]] attention_weights<T> attention_weights_of(const layer_tensors& t, const step_memory& m) {
  return {m.of<const T>(t.attention_gain), m.of<const T>(t.attention_bias), m.of<const T>(t.qkv_weight),
          m.of<const T>(t.qkv_bias),       m.of<const T>(t.out_weight),     m.of<const T>(t.out_bias)};
}

}  // namespace

std::span<std::byte> step_memory::find(tensor_index tensor) const {
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    if (accesses_[i].tensor == tensor) {
      return buffers_[i];
    }
  }
  throw std::logic_error("a step of the model uses a tensor that it has not declared");
}

template <typename T>
model<T>::model(const model_shape& shape, std::unique_ptr<operations<T>> compute)
    : shape_(shape), tensors_(shape, forebay::dtype_of<T>::value), compute_(std::move(compute)) {
  for (std::size_t i = 0; i < shape.micro_batches; ++i) {
    add_micro_batch(i);
  }
}

template <typename T>
void model<T>::add_micro_batch(std::size_t number) {
  const bool accumulate = number > 0;
  add_embedding_forward(number);
  std::vector<std::size_t> forward;  // each layer's first step: attention; the next one is the MLP's first half
  for (std::size_t l = 0; l < shape_.layers; ++l) {
    forward.push_back(steps_.size());
    add_attention_forward(l);
    add_mlp_forward(l);
  }
  add_head(number);
  for (std::size_t l = shape_.layers; l-- > 0;) {
    recomputations_.push_back({{forward[l], forward[l] + 1}, steps_.size()});
    add_mlp_backward(l, accumulate);
    add_attention_backward(l, accumulate);
  }
  add_embedding_backward(number);
}

template <typename T>
tensor_index model<T>::after(std::size_t layer) const {
  return layer + 1 < shape_.layers ? tensors_.layers[layer + 1].in : tensors_.final_in;
}

template <typename T>
void model<T>::add_embedding_forward(std::size_t micro_batch) {
  const batch_shape s = shape_.of_batch();
  const tensor_index tokens = tensors_.tokens[micro_batch];
  const tensor_index of_token = tensors_.token_embedding;
  const tensor_index of_position = tensors_.position_embedding;
  const tensor_index out = tensors_.layers.front().in;
  operations<T>* const compute = compute_.get();
  steps_.push_back({"embedding forward",
                    "forward",
                    {reads(tokens), reads(of_token), reads(of_position), creates(out)},
                    0,
                    [=](const step_memory& m) {
                      embedding_forward<T>(s, m.of<const std::uint8_t>(tokens), m.of<const T>(of_token),
                                           m.of<const T>(of_position), m.of<T>(out), *compute);
                    }});
}

template <typename T>
void model<T>::add_attention_forward(std::size_t layer) {
  const batch_shape s = shape_.of_batch();
  const layer_tensors t = tensors_.layers[layer];
  operations<T>* const compute = compute_.get();
  steps_.push_back({fmt::format("h.{} attention forward", layer),
                    "forward",
                    {reads(t.in), reads(t.attention_gain), reads(t.attention_bias), reads(t.qkv_weight),
                     reads(t.qkv_bias), reads(t.out_weight), reads(t.out_bias), creates(t.qkv), creates(t.log_sums),
                     creates(t.mixed), creates(t.middle)},
                    attention_forward_scratch<T>(s, *compute),
                    [=](const step_memory& m) {
                      attention_forward<T>(s, attention_weights_of<T>(t, m), m.of<const T>(t.in), m.of<T>(t.middle),
                                           {m.of<T>(t.qkv), m.of<T>(t.log_sums), m.of<T>(t.mixed)}, *compute,
                                           m.workspace());
                    }});
}

template <typename T>
void model<T>::add_mlp_forward(std::size_t layer) {
  const batch_shape s = shape_.of_batch();
  const layer_tensors t = tensors_.layers[layer];
  const tensor_index out = after(layer);
  operations<T>* const compute = compute_.get();
  steps_.push_back(
      {fmt::format("h.{} mlp up forward", layer),
       "forward",
       {reads(t.middle), reads(t.mlp_gain), reads(t.mlp_bias), reads(t.up_weight), reads(t.up_bias), creates(t.hidden)},
       mlp_up_forward_scratch<T>(s, *compute),
       [=](const step_memory& m) {
         mlp_up_forward<T>(s,
                           {m.of<const T>(t.mlp_gain), m.of<const T>(t.mlp_bias), m.of<const T>(t.up_weight),
                            m.of<const T>(t.up_bias)},
                           m.of<const T>(t.middle), m.of<T>(t.hidden), *compute, m.workspace());
       }});
  steps_.push_back({fmt::format("h.{} mlp down forward", layer),
                    "forward",
                    {reads(t.hidden), reads(t.middle), reads(t.down_weight), reads(t.down_bias), creates(out)},
                    mlp_down_forward_scratch<T>(s, *compute),
                    [=](const step_memory& m) {
                      mlp_down_forward<T>(s, {m.of<const T>(t.down_weight), m.of<const T>(t.down_bias)},
                                          m.of<const T>(t.hidden), m.of<const T>(t.middle), m.of<T>(out), *compute,
                                          m.workspace());
                    }});
}

template <typename T>
void model<T>::add_head(std::size_t micro_batch) {
  const batch_shape s = shape_.of_batch();
  const bool accumulate = micro_batch > 0;
  const double scale = 1.0 / static_cast<double>(shape_.tokens());
  const tensor_table& t = tensors_;
  operations<T>* const compute = compute_.get();
  steps_.push_back({"head", "backward",
                    with_gradients({consumes(t.final_in), reads(t.tokens[micro_batch]), reads(t.final_gain),
                                    reads(t.final_bias), reads(t.token_embedding), creates(t.stream_gradient),
                                    accumulate ? writes(t.loss) : creates(t.loss)},
                                   t, {t.final_gain, t.final_bias, t.token_embedding}, accumulate),
                    head_scratch<T>(s, *compute),
                    [=, tokens = t.tokens[micro_batch], gain = t.final_gain, bias = t.final_bias,
                     embedding = t.token_embedding, d_gain = t.gradient(t.final_gain),
                     d_bias = t.gradient(t.final_bias), d_embedding = t.gradient(t.token_embedding), in = t.final_in,
                     out = t.stream_gradient, loss = t.loss](const step_memory& m) {
                      head_forward_backward<T>(s, m.of<const std::uint8_t>(tokens),
                                               {m.of<const T>(gain), m.of<const T>(bias), m.of<const T>(embedding)},
                                               m.of<const T>(in), m.of<T>(out), m.of<T>(loss),
                                               {m.of<T>(d_gain), m.of<T>(d_bias), m.of<T>(d_embedding)}, scale,
                                               accumulate, *compute, m.workspace());
                    }});
}

template <typename T>
void model<T>::add_mlp_backward(std::size_t layer, bool accumulate) {
  const batch_shape s = shape_.of_batch();
  const layer_tensors t = tensors_.layers[layer];
  const auto grad = [n = tensors_.parameters().size()](tensor_index p) { return p + n; };
  const tensor_index stream = tensors_.stream_gradient;
  const tensor_index d_hidden = tensors_.d_hidden;
  operations<T>* const compute = compute_.get();
  steps_.push_back(
      {fmt::format("h.{} mlp down backward", layer), "backward",
       with_gradients({consumes(t.hidden), reads(stream), reads(t.down_weight), reads(t.down_bias), creates(d_hidden)},
                      tensors_, {t.down_weight, t.down_bias}, accumulate),
       mlp_down_backward_scratch<T>(s, *compute), [=](const step_memory& m) {
         mlp_down_backward<T>(s, {m.of<const T>(t.down_weight), m.of<const T>(t.down_bias)}, m.of<const T>(t.hidden),
                              m.of<const T>(stream), m.of<T>(d_hidden),
                              {m.of<T>(grad(t.down_weight)), m.of<T>(grad(t.down_bias))}, accumulate, *compute,
                              m.workspace());
       }});
  steps_.push_back({fmt::format("h.{} mlp up backward", layer), "backward",
                    with_gradients({consumes(t.middle), consumes(d_hidden), writes(stream), reads(t.mlp_gain),
                                    reads(t.mlp_bias), reads(t.up_weight), reads(t.up_bias)},
                                   tensors_, {t.mlp_gain, t.mlp_bias, t.up_weight, t.up_bias}, accumulate),
                    mlp_up_backward_scratch<T>(s, *compute), [=](const step_memory& m) {
                      mlp_up_backward<T>(s,
                                         {m.of<const T>(t.mlp_gain), m.of<const T>(t.mlp_bias),
                                          m.of<const T>(t.up_weight), m.of<const T>(t.up_bias)},
                                         m.of<const T>(t.middle), m.of<const T>(d_hidden), m.of<T>(stream),
                                         {m.of<T>(grad(t.mlp_gain)), m.of<T>(grad(t.mlp_bias)),
                                          m.of<T>(grad(t.up_weight)), m.of<T>(grad(t.up_bias))},
                                         accumulate, *compute, m.workspace());
                    }});
}

template <typename T>
void model<T>::add_attention_backward(std::size_t layer, bool accumulate) {
  const batch_shape s = shape_.of_batch();
  const layer_tensors t = tensors_.layers[layer];
  const auto grad = [n = tensors_.parameters().size()](tensor_index p) { return p + n; };
  const tensor_index stream = tensors_.stream_gradient;
  operations<T>* const compute = compute_.get();
  steps_.push_back(
      {fmt::format("h.{} attention backward", layer), "backward",
       with_gradients({consumes(t.in), consumes(t.qkv), consumes(t.log_sums), consumes(t.mixed), writes(stream),
                       reads(t.attention_gain), reads(t.attention_bias), reads(t.qkv_weight), reads(t.qkv_bias),
                       reads(t.out_weight), reads(t.out_bias)},
                      tensors_,
                      {t.attention_gain, t.attention_bias, t.qkv_weight, t.qkv_bias, t.out_weight, t.out_bias},
                      accumulate),
       attention_backward_scratch<T>(s, *compute), [=](const step_memory& m) {
         attention_backward<T>(
             s, attention_weights_of<T>(t, m), m.of<const T>(t.in),
             {m.of<const T>(t.qkv), m.of<const T>(t.log_sums), m.of<const T>(t.mixed)}, m.of<T>(stream),
             {m.of<T>(grad(t.attention_gain)), m.of<T>(grad(t.attention_bias)), m.of<T>(grad(t.qkv_weight)),
              m.of<T>(grad(t.qkv_bias)), m.of<T>(grad(t.out_weight)), m.of<T>(grad(t.out_bias))},
             accumulate, *compute, m.workspace());
       }});
}

template <typename T>
void model<T>::add_embedding_backward(std::size_t micro_batch) {
  const batch_shape s = shape_.of_batch();
  const bool accumulate = micro_batch > 0;
  const tensor_index tokens = tensors_.tokens[micro_batch];
  const tensor_index stream = tensors_.stream_gradient;
  const tensor_index d_token = tensors_.gradient(tensors_.token_embedding);
  const tensor_index d_position = tensors_.gradient(tensors_.position_embedding);
  operations<T>* const compute = compute_.get();
  steps_.push_back(
      {"embedding backward",
       "backward",
       {reads(tokens), consumes(stream), writes(d_token), accumulate ? writes(d_position) : creates(d_position)},
       0,
       [=](const step_memory& m) {
         embedding_backward<T>(s, m.of<const std::uint8_t>(tokens), m.of<const T>(stream), m.of<T>(d_token),
                               m.of<T>(d_position), accumulate, *compute);
       }});
}

template class model<float>;
template class model<double>;

}  // namespace train_gpt
