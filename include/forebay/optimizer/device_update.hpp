#pragma once

#include <cstddef>
#include <span>

#include <forebay/device/device.hpp>
#include <forebay/optimizer/adamw_kernel.hpp>

namespace forebay {

/// How an update computes in device memory that the host cannot address: it enqueues on the stream and returns. The
/// results have the bits of the CPU's kernels. All spans are device memory but where said.
class device_update {
 public:
  device_update() = default;
  device_update(const device_update&) = delete;
  device_update& operator=(const device_update&) = delete;
  virtual ~device_update() = default;

  /// As `adamw_update`. \throws device_error.
  virtual void update(stream& on, std::span<float> parameter, std::span<const float> gradient, std::span<float> m,
                      std::span<float> v, const adamw_coefficients& c) = 0;
  /// As `leaf_sum_of_squares` of each leaf: `norm_leaves(gradient.size())` of them. \throws device_error.
  virtual void leaf_sums(stream& on, std::span<const float> gradient, std::span<double> leaves) = 0;
};

}  // namespace forebay
