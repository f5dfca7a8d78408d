#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/plan/trace.hpp>

#include "training.hpp"

namespace plan_model {

/// How finely an iteration is cut into steps and items.
struct granularity {
  std::uint64_t half_layers = 1;  ///< of each step: 1 attention or MLP alone, 2 a layer, 6 three layers
  /// Largest bytes of an item; weights, gradients and state of a step are updated in as many pieces as this asks for.
  forebay::byte_count device_part = 0;
  forebay::byte_count host_part = 0;  ///< of optimizer state
};

/// One iteration as the planner takes it, and what its steps and items are called.
struct workload {
  forebay::plan::trace trace;
  std::vector<std::string> step_names;
  std::vector<std::string> item_names;
};

/// Forward, loss and backward of each micro-batch on the device, in which gradients add up; then the updates, in the
/// order in which gradients are ready. \throws usage_error when there would be too many items.
[[nodiscard]] workload build_workload(const training& t, const compute_speed& speed, const granularity& g);

/// An iteration that was recorded: steps and items are called by their numbers.
[[nodiscard]] workload as_recorded(const forebay::plan::trace& order);

/// The model's steps from the embedding to the output, merged as `g` says.
[[nodiscard]] std::vector<block> steps_of(const training& t, const granularity& g);

}  // namespace plan_model
