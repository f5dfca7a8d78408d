#pragma once

#include <cstdint>
#include <vector>

#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/adamw.hpp>

#include "model.hpp"
#include "trainer.hpp"

namespace train_gpt {

/// Trains through the engine: the model's steps become the order, and the engine brings each one's memory, or has
/// activations made again by the steps that made them (`engine_options::recompute`).
class engine_trainer final : public trainer {
 public:
  /// `model` outlives it. \throws whatever the engine throws, forebay::capacity_error above all.
  engine_trainer(const model<float>& model, const optimizer_settings& optimizer, std::uint64_t seed,
                 forebay::engine_options options);
  ~engine_trainer() override;

  step_result run(std::uint64_t step, const step_text& text) override;
  [[nodiscard]] std::vector<forebay::tensor_source> state() override;
  [[nodiscard]] forebay::engine_report report() const override { return engine_.report(); }
  [[nodiscard]] forebay::plan_report analyse() const override { return engine_.analyse(); }

  /// The least capacities with which this training runs on these options (whose own capacities may be small).
  [[nodiscard]] static forebay::tier_bytes minimum_capacity(const model<float>& model,
                                                            const optimizer_settings& optimizer,
                                                            forebay::engine_options options);

 private:
  void launch(const model_step& step, forebay::step_id id, forebay::iteration& iteration);
  void enqueue(const model_step& step, const forebay::lease& lease, forebay::stream& stream);
  [[nodiscard]] std::vector<forebay::recomputation> recomputations();

  const model<float>& model_;
  forebay::engine engine_;
  std::vector<forebay::tensor_id> ids_;  ///< by the model's tensor index
  forebay::adamw adamw_;
  std::vector<forebay::step_id> steps_;  ///< one for each step of the model
};

}  // namespace train_gpt
