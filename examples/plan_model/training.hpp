#pragma once

#include <cstdint>

#include <forebay/base/dtype.hpp>
#include <forebay/plan/order.hpp>

#include "model.hpp"

namespace plan_model {

enum class optimizer_kind : std::uint8_t {
  adamw,  ///< two moments in fp32, and fp32 master weights beside 16-bit ones
  sgd     ///< without momentum: nothing but those master weights
};

enum class recompute : std::uint8_t {
  none,
  all  ///< the backward step of a layer begins with its forward step; of its activations only the input is kept
};

/// What is trained, and how.
struct training {
  model_shape model;
  std::uint64_t batch = 1;  ///< sequences of a micro-batch
  std::uint64_t micro_batches = 1;
  forebay::dtype type = forebay::dtype::bf16;  ///< of weights, gradients and activations
  optimizer_kind optimizer = optimizer_kind::adamw;
  forebay::place update = forebay::place::host;
  recompute again = recompute::none;
  bool clip = false;  ///< by the norm of all gradients: no update before the last of them
};

/// How fast the two processors compute.
struct compute_speed {
  double flops = 0.0;         ///< of the device per second, reached: peak times efficiency
  double update_bytes = 0.0;  ///< per second that an update on the CPU reads and writes
  double device_bytes = 0.0;  ///< per second that an update on the device reads and writes
};

[[nodiscard]] inline std::uint64_t tokens_of_micro_batch(const training& t) { return t.batch * t.model.context; }
[[nodiscard]] inline std::uint64_t tokens_of_iteration(const training& t) {
  return tokens_of_micro_batch(t) * t.micro_batches;
}

/// Bytes of the optimizer's state for one parameter.
[[nodiscard]] constexpr std::uint64_t state_bytes(const training& t) {
  const std::uint64_t master = forebay::size_of(t.type) < 4 ? 4 : 0;
  return master + (t.optimizer == optimizer_kind::adamw ? 8 : 0);
}

/// Bytes that the update of one parameter reads and writes: gradient in, weight out, state in and out; fp32 weights,
/// which have no master, in as well. 28 for AdamW, 12 for SGD.
[[nodiscard]] constexpr std::uint64_t update_bytes(const training& t) {
  const std::uint64_t element = forebay::size_of(t.type);
  return 2 * element + 2 * state_bytes(t) + (element < 4 ? 0 : element);
}

}  // namespace plan_model
