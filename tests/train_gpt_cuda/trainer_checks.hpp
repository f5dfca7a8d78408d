#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/checkpoint/digest.hpp>
#include <forebay/device/cuda_device.hpp>
#include <forebay/optimizer/cuda_update.hpp>

#include "train_gpt/cuda_operations.hpp"
#include "train_gpt/device_trainer.hpp"
#include "train_gpt/engine_trainer.hpp"
#include "train_gpt/initialise.hpp"
#include "train_gpt/plain_memory.hpp"
#include "train_gpt/random.hpp"

/// What the trainer must do on any CUDA run-time.
namespace train_gpt::checks {

inline step_text text_for(const model_shape& shape, std::uint64_t step) {
  step_text text(shape.micro_batches, std::vector<std::uint8_t>(shape.token_bytes()));
  for (std::size_t m = 0; m < text.size(); ++m) {
    for (std::size_t i = 0; i < text[m].size(); ++i) {
      text[m][i] = static_cast<std::uint8_t>(random_below(step * 100 + m, i, 50) * 5);
    }
  }
  return text;
}

inline std::unique_ptr<forebay::device> make_cuda(forebay::byte_count bytes) { return forebay::cuda_device(0, bytes); }

/// How far a gradient may be from the CPU's, as a share of its tensor's largest element.
inline double tolerance(matmul_precision precision) {
  switch (precision) {
    case matmul_precision::tf32:
      return 1e-2;
    case matmul_precision::bf16:
      return 6e-2;
    default:
      return 1e-4;
  }
}

/// Each parameter's gradient, and so each layer's forward and backward steps, beside the CPU's.
inline void expect_gradients_of_the_cpu(const model_shape& shape, matmul_precision precision) {
  const step_text text = text_for(shape, 1);
  const model<float> on_cpu(shape);
  plain_memory<float> memory(on_cpu);
  const tensor_table& t = on_cpu.tensors();
  initialise_parameters(t, 3, [&](tensor_index p, std::span<const float> values, std::size_t offset) {
    std::copy(values.begin(), values.end(), memory.of<float>(p).subspan(offset).begin());
  });
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::copy(text[i].begin(), text[i].end(), memory.of<std::uint8_t>(t.tokens[i]).begin());
  }
  for (const model_step& step : on_cpu.steps()) {
    memory.run(step);
  }
  const auto kernels = forebay::cuda_update();
  optimizer_settings optimizer;
  optimizer.kernels = kernels.get();
  const model<float> on_gpu(shape, cuda_operations(precision));
  device_trainer trainer(on_gpu, optimizer, 3, make_cuda);
  trainer.run_model(text);
  for (tensor_index p = 0; p < t.parameters().size(); ++p) {
    const std::span<const float> want = memory.of<float>(t.gradient(p));
    const std::vector<float> got = trainer.values(t.gradient(p));
    double largest = 0.0;
    double worst = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
      const double apart = std::abs(static_cast<double>(want[i]) - static_cast<double>(got[i]));
      worst = apart <= worst ? worst : apart;  // NaN is the worst
    }
    EXPECT_GT(largest, 0.0) << t.specs()[p].name << " has no gradient: the check would say nothing";
    EXPECT_LE(worst, tolerance(precision) * largest) << t.specs()[p].name;
  }
}

struct outcome {
  std::vector<float> losses;
  std::string digest;
  friend bool operator==(const outcome&, const outcome&) = default;
};

inline outcome train(trainer& by, const model_shape& shape, std::uint64_t steps) {
  outcome o;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    o.losses.push_back(by.run(step, text_for(shape, step)).loss);
  }
  o.digest = forebay::digest(by.state());
  return o;
}

/// The engine in the smallest device tier, and host memory, gives the bits of the run with all in the GPU's memory.
inline void expect_bits_of_the_resident_run(const model_shape& shape, std::uint64_t steps) {
  const model<float> m(shape, cuda_operations(matmul_precision::fp32));
  const auto kernels = forebay::cuda_update();
  optimizer_settings optimizer{1e-2F, 1.0F, 0.1F};
  optimizer.kernels = kernels.get();
  optimizer.subgroup_bytes = 64 << 10U;
  device_trainer resident(m, optimizer, 3, make_cuda);
  const outcome want = train(resident, shape, steps);
  EXPECT_LT(want.losses.back(), want.losses.front());
  const auto options = [](forebay::byte_count device) {
    forebay::engine_options o;
    o.device = make_cuda(device);
    o.host.capacity = forebay::byte_count{64} << 20U;
    o.planning = forebay::planning_policy::off;
    return o;
  };
  constexpr forebay::byte_count plenty = forebay::byte_count{60} << 20U;
  const forebay::byte_count least = engine_trainer::minimum_capacity(m, optimizer, options(plenty)).device;
  for (const forebay::byte_count device : {least, plenty}) {  // updates on the host, and on the device
    engine_trainer engine(m, optimizer, 3, options(device));
    EXPECT_EQ(train(engine, shape, steps), want) << device << " bytes of device memory";
  }
}

}  // namespace train_gpt::checks
