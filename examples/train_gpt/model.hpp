#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/plan/order.hpp>

#include "operations.hpp"
#include "scratch.hpp"
#include "tensors.hpp"

namespace train_gpt {

struct model_access {
  tensor_index tensor = 0;
  forebay::uses how = forebay::uses::none;
};

/// Where a step's tensors and its scratch lie while it runs. This is all that model code sees of memory.
class step_memory {
 public:
  /// `buffers`: one for each access.
  step_memory(std::span<const model_access> accesses, std::span<const std::span<std::byte>> buffers,
              std::span<std::byte> workspace)
      : accesses_(accesses), buffers_(buffers), workspace_(workspace) {}

  /// \throws std::logic_error when the step has not declared that it uses the tensor.
  template <typename T>
  [[nodiscard]] std::span<T> of(tensor_index tensor) const {
    const std::span<std::byte> buffer = find(tensor);
    return {reinterpret_cast<T*>(buffer.data()), buffer.size() / sizeof(T)};
  }
  [[nodiscard]] scratch workspace() const { return scratch(workspace_); }

 private:
  [[nodiscard]] std::span<std::byte> find(tensor_index tensor) const;

  std::span<const model_access> accesses_;
  std::span<const std::span<std::byte>> buffers_;
  std::span<std::byte> workspace_;
};

/// One entry of the execution order.
struct model_step {
  std::string name;
  std::string phase;                   ///< "forward" or "backward"
  std::vector<model_access> accesses;  ///< each tensor once
  std::size_t workspace = 0;           ///< bytes
  std::function<void(const step_memory&)> run;
};

/// Steps that a training without room for all activations may run again, each as it was, right before the step that
/// needs what they make: that can be given up until then.
struct model_recomputation {
  std::vector<std::size_t> again;  ///< among the model's steps, in order
  std::size_t before = 0;
};

/// A decoder-only transformer over bytes (pre-norm, causal multi-head attention, GELU MLP, learned positions, tied
/// output head): its tensors, and the steps of one iteration up to the gradients. Whoever trains it gives the steps
/// memory: the engine, or plain vectors.
///
/// `float` trains; `double` is for checking the gradients.
template <typename T>
class model {
 public:
  /// \throws forebay::usage_error on an empty shape, or heads that do not divide the width.
  explicit model(const model_shape& shape, std::unique_ptr<operations<T>> compute = cpu_operations<T>());

  [[nodiscard]] const model_shape& shape() const { return shape_; }
  [[nodiscard]] const tensor_table& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<model_step>& steps() const { return steps_; }
  /// One for each layer and micro-batch: all that its forward steps leave for its backward steps but its input.
  [[nodiscard]] const std::vector<model_recomputation>& recomputations() const { return recomputations_; }
  /// What the steps compute with.
  [[nodiscard]] operations<T>& compute() const { return *compute_; }

 private:
  void add_micro_batch(std::size_t number);
  void add_embedding_forward(std::size_t micro_batch);
  void add_attention_forward(std::size_t layer);
  void add_mlp_forward(std::size_t layer);
  void add_head(std::size_t micro_batch);
  void add_mlp_backward(std::size_t layer, bool accumulate);
  void add_attention_backward(std::size_t layer, bool accumulate);
  void add_embedding_backward(std::size_t micro_batch);
  /// The residual stream after a layer: the next one's input.
  [[nodiscard]] tensor_index after(std::size_t layer) const;

  model_shape shape_;
  tensor_table tensors_;
  std::unique_ptr<operations<T>> compute_;
  std::vector<model_step> steps_;
  std::vector<model_recomputation> recomputations_;
};

}  // namespace train_gpt
