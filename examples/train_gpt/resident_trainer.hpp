#pragma once

#include <cstdint>
#include <vector>

#include <forebay/optimizer/adamw_kernel.hpp>
#include <forebay/telemetry/timeline.hpp>

#include "model.hpp"
#include "plain_memory.hpp"
#include "trainer.hpp"

namespace train_gpt {

/// Everything in plain memory, no engine: the run whose bits the engine's must equal.
class resident_trainer final : public trainer {
 public:
  /// `model` and `timeline` (may be null) outlive it.
  resident_trainer(const model<float>& model, const optimizer_settings& optimizer, std::uint64_t seed,
                   forebay::telemetry::timeline* timeline = nullptr);

  step_result run(std::uint64_t step, const step_text& text) override;
  [[nodiscard]] std::vector<forebay::tensor_source> state() override;
  [[nodiscard]] forebay::engine_report report() const override { return {}; }
  [[nodiscard]] forebay::plan_report analyse() const override { return {}; }

 private:
  template <typename Work>
  void timed(forebay::telemetry::lane_id lane, const std::string& name, const Work& work);
  /// The global norm of the gradients; names the first that is not finite.
  double gradient_norm(std::string& non_finite_tensor);
  void update(float clip);
  void update(tensor_index parameter, const forebay::adamw_coefficients& coefficients);

  const model<float>& model_;
  optimizer_settings optimizer_;
  plain_memory<float> memory_;
  pieces m_;
  pieces v_;
  std::vector<double> leaves_;
  std::uint64_t updates_ = 0;
  forebay::telemetry::timeline* timeline_;
  forebay::telemetry::lane_id compute_lane_ = 0;
  forebay::telemetry::lane_id optimizer_lane_ = 0;
};

}  // namespace train_gpt
