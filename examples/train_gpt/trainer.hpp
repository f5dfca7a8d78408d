#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <forebay/checkpoint/tensor_source.hpp>
#include <forebay/engine/report.hpp>
#include <forebay/optimizer/device_update.hpp>

namespace train_gpt {

/// How the parameters are updated.
struct optimizer_settings {
  float lr = 1e-3F;
  float clip = 0.0F;  ///< 0: no clipping
  float weight_decay = 0.0F;
  forebay::device_update* kernels = nullptr;  ///< update in device memory that the host can't address; outlives all
  // Of the engine's update; neither changes a bit.
  unsigned threads = 0;                               ///< 0: all usable CPUs
  forebay::byte_count subgroup_bytes = 16ULL << 20U;  ///< of parameters, gradients, m and v held at once
};

/// What one step did.
struct step_result {
  float loss = 0.0F;
  double gradient_norm = 0.0;
  std::string non_finite_tensor;   ///< not empty: a gradient that was not finite, and no update was made
  forebay::iteration_report cost;  ///< all zero but the seconds when resident
};

/// The bytes of each micro-batch of a step.
using step_text = std::vector<std::vector<std::uint8_t>>;

/// Trains a model. Two implementations run the same steps: through the engine, and in plain memory.
class trainer {
 public:
  trainer() = default;
  trainer(const trainer&) = delete;
  trainer& operator=(const trainer&) = delete;
  virtual ~trainer() = default;

  /// One step, counted from 1. \throws interrupted when a signal came, and forebay::error.
  virtual step_result run(std::uint64_t step, const step_text& text) = 0;
  /// All weights, then all m and v, in registration order; valid while the trainer lives and between steps.
  [[nodiscard]] virtual std::vector<forebay::tensor_source> state() = 0;
  /// Capacities, what is used now, peaks and degradations; empty when resident.
  [[nodiscard]] virtual forebay::engine_report report() const = 0;
  /// How close the last step came to what no schedule can beat, and what limits it; empty when resident.
  [[nodiscard]] virtual forebay::plan_report analyse() const = 0;
};

}  // namespace train_gpt
