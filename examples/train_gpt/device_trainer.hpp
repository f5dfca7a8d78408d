#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <forebay/device/device.hpp>
#include <forebay/optimizer/device_update.hpp>

#include "model.hpp"
#include "trainer.hpp"

namespace train_gpt {

/// Everything in a device's memory, no engine: the run whose bits the engine's on that device must equal.
class device_trainer final : public trainer {
 public:
  using device_maker = std::function<std::unique_ptr<forebay::device>(forebay::byte_count)>;

  /// `model` and `optimizer.kernels` outlive it. `make` is asked for a device with as much memory as all takes.
  device_trainer(const model<float>& model, const optimizer_settings& optimizer, std::uint64_t seed,
                 const device_maker& make);

  step_result run(std::uint64_t step, const step_text& text) override;
  [[nodiscard]] std::vector<forebay::tensor_source> state() override;
  [[nodiscard]] forebay::engine_report report() const override { return {}; }
  [[nodiscard]] forebay::plan_report analyse() const override { return {}; }

  /// The model's steps alone; then the gradients can be read.
  void run_model(const step_text& text);
  [[nodiscard]] std::vector<float> values(tensor_index tensor) { return read<float>(tensors_[tensor]); }

 private:
  template <typename T>
  [[nodiscard]] std::vector<T> read(std::span<std::byte> from);
  double gradient_norm(std::string& non_finite_tensor);
  void update(float clip);

  const model<float>& model_;
  optimizer_settings optimizer_;
  std::unique_ptr<forebay::device> device_;
  std::unique_ptr<forebay::stream> stream_;
  std::vector<std::span<std::byte>> tensors_;
  std::vector<std::span<std::byte>> m_;
  std::vector<std::span<std::byte>> v_;
  std::vector<std::span<std::byte>> leaves_;  ///< of each gradient's norm
  std::span<std::byte> workspace_;
  std::uint64_t updates_ = 0;
};

}  // namespace train_gpt
