#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/bytes.hpp>
#include <forebay/device/device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/optimizer/cuda_update.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

/// What the optimizer's kernels must do on any CUDA run-time.
namespace forebay::update_checks {

/// In [-1, 1), from where it stands alone.
inline float noise(std::uint64_t tensor, std::uint64_t element) {
  std::uint64_t x = (tensor + 1) * 0x9e3779b97f4a7c15ULL ^ (element + 1) * 0xc2b2ae3d27d4eb4fULL;
  x ^= x >> 31U;
  x *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<float>(static_cast<double>(x >> 40U) * 0x1p-23 - 1.0);
}

inline std::vector<float> noise_of(std::uint64_t tensor, std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = noise(tensor, i);
  }
  return values;
}

/// Arrays on the device, one behind another.
class on_device {
 public:
  explicit on_device(device& d) : device_(d), stream_(d.make_stream(stream_kind::compute)) {}
  template <typename T>
  std::span<T> put(const std::vector<T>& values) {
    const std::span<T> place(reinterpret_cast<T*>(device_.arena().data() + used_), values.size());
    used_ += align_up(values.size() * sizeof(T), 256);
    stream_->copy(std::as_writable_bytes(place).data(), std::as_bytes(std::span(values)).data(), place.size_bytes(),
                  copy_direction::host_to_device);
    stream_->synchronize();
    return place;
  }
  template <typename T>
  std::vector<T> get(std::span<T> place) {
    std::vector<T> values(place.size());
    stream_->copy(std::as_writable_bytes(std::span(values)).data(), std::as_bytes(place).data(), place.size_bytes(),
                  copy_direction::device_to_host);
    stream_->synchronize();
    return values;
  }
  [[nodiscard]] stream& on() { return *stream_; }

 private:
  device& device_;
  std::unique_ptr<stream> stream_;
  byte_count used_ = 0;
};

/// The kernels by themselves give the bits of the CPU's. Needs 4 MiB.
inline void expect_bits_of_the_cpu(device& d) {
  on_device memory(d);
  constexpr std::size_t n = 70'001;
  auto p = noise_of(0, n);
  const auto g = noise_of(1, n);
  auto m = noise_of(2, n);
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    v[i] = std::abs(noise(3, i));
  }
  const auto kernels = cuda_update();
  const adamw_coefficients c = make_adamw_coefficients({1e-2F, 0.9F, 0.99F, 1e-8F, 0.1F}, 3, 0.7F);
  const auto dp = memory.put(p);
  const auto dg = memory.put(g);
  const auto dm = memory.put(m);
  const auto dv = memory.put(v);
  const auto leaves = memory.put(std::vector<double>(norm_leaves(n)));
  kernels->leaf_sums(memory.on(), dg, leaves);
  kernels->update(memory.on(), dp, dg, dm, dv, c);
  adamw_update(p, g, m, v, c);
  EXPECT_EQ(memory.get(dp), p);
  EXPECT_EQ(memory.get(dm), m);
  EXPECT_EQ(memory.get(dv), v);
  auto sums = memory.get(leaves);
  EXPECT_EQ(tree_sum(sums), sum_of_squares(g));

  const auto narrow = memory.put(std::vector<bf16>(n));
  cuda_cast(memory.on(), dg, narrow);
  cuda_scale(memory.on(), dg, 3.0F, dp);
  cuda_cast(memory.on(), narrow, dm);
  const auto scaled = memory.get(dp);
  const auto rounded = memory.get(dm);
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(scaled[i], 3.0F * g[i]);
    ASSERT_EQ(rounded[i], static_cast<float>(bf16(g[i])));
  }
}

/// Parameters, m and v after three steps through an engine on that device; the second one's gradients are large enough
/// to be clipped.
inline std::vector<std::vector<float>> train(std::unique_ptr<device> on, const adamw_options& options) {
  const std::vector<std::size_t> sizes{5000, 3, 4096, 20'000};
  engine_options o;
  o.device = std::move(on);
  o.host.capacity = 8_MiB;
  o.chunk = 64_KiB;
  o.planning = planning_policy::off;
  engine owner(std::move(o));
  std::vector<adamw_parameter> trained;
  order steps;
  std::vector<step_id> backward;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::vector<std::uint64_t> shape{sizes[k]};
    trained.push_back({owner.add({"p" + std::to_string(k), dtype::f32, shape, role::parameter}),
                       owner.add({"g" + std::to_string(k), dtype::f32, shape, role::gradient}), k != 1});
    backward.push_back(steps.step("backward " + std::to_string(k), {creates(trained[k].gradient)}, {}));
  }
  adamw optimizer(owner, trained, options);
  optimizer.append_to(steps);
  owner.set_order(steps);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    owner.write<float>(trained[k].parameter, noise_of(k, sizes[k]));
  }
  for (std::uint64_t number = 0; number < 3; ++number) {
    iteration it = owner.begin(number);
    std::vector<std::vector<float>> gradients;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      gradients.push_back(noise_of(100 * (number + 1) + k, sizes[k]));
      for (float& value : gradients.back()) {
        value *= number == 1 ? 1.0F : 1e-3F;
      }
      const lease held = it.acquire(backward[k], owner.compute_stream());
      owner.compute_stream().copy(held.bytes(trained[k].gradient).data(), std::as_bytes(std::span(gradients[k])).data(),
                                  sizes[k] * sizeof(float), copy_direction::host_to_device);
    }
    const update_report report = optimizer.update(it);
    EXPECT_EQ(report.clip_scale < 1.0F, number == 1);
    it.finish();
  }
  std::vector<std::vector<float>> state;
  for (const adamw_parameter& p : trained) {
    for (const tensor_id t : {p.parameter, optimizer.first_moment(p.parameter), optimizer.second_moment(p.parameter)}) {
      state.emplace_back(owner.spec(t).elements());
      owner.read<float>(t, std::span(state.back()));
    }
  }
  return state;
}

inline adamw_options small_subgroups() {
  adamw_options options;
  options.clip_norm = 10.0F;
  options.subgroup_bytes = 64_KiB;
  options.threads = 1;
  return options;
}

}  // namespace forebay::update_checks
