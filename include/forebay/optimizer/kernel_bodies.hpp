#pragma once

#include <cmath>
#include <cstddef>

#include <forebay/base/dtype.hpp>
#include <forebay/base/host_device.hpp>
#include <forebay/optimizer/adamw_kernel.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

// The bodies of the optimizer's kernels (see device/kernel_team.hpp): what the CPU's kernels compute, with the same
// bits.
namespace forebay::kernels {

/// One element of `adamw_update`, in place.
struct adamw_step {
  float* parameter;
  const float* gradient;
  float* m;
  float* v;
  adamw_coefficients c;

  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const {
    const double g = c.clip * gradient[i];
    const double new_m = c.beta1 * m[i] + c.one_minus_beta1 * g;
    const double new_v = c.beta2 * v[i] + (c.one_minus_beta2 * g) * g;
    const double change = new_m / (std::sqrt(new_v) * c.root_correction + c.eps);
    const double p = c.keep * parameter[i] - c.rate * change;
    m[i] = static_cast<float>(new_m);
    v[i] = static_cast<float>(new_v);
    parameter[i] = static_cast<float>(p);
  }
};

/// `leaf_sum_of_squares` of each leaf of a tensor: for `norm_leaves(size)` items.
struct norm_leaf {
  const float* gradient;
  std::size_t size;
  double* leaves;

  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t leaf) const {
    const float* const x = gradient + leaf * norm_leaf_elements;
    const std::size_t left = size - leaf * norm_leaf_elements;
    const double sum =
        team.template sum<double>(left < norm_leaf_elements ? left : norm_leaf_elements, [&](std::size_t i) {
          const double element = x[i];
          return element * element;
        });
    team.once([&] { leaves[leaf] = sum; });
  }
};

/// to[i] = from[i] * factor, in fp32.
struct scale_step {
  const float* from;
  float factor;
  float* to;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const { to[i] = from[i] * factor; }
};

/// Rounds to nearest even; NaN stays NaN.
struct cast_to_bf16 {
  const float* from;
  bf16* to;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const { to[i] = bf16(from[i]); }
};

struct cast_from_bf16 {
  const bf16* from;
  float* to;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const { to[i] = static_cast<float>(from[i]); }
};

}  // namespace forebay::kernels
