#pragma once

#include <cstdint>
#include <span>

#include <forebay/optimizer/simd.hpp>

namespace forebay {

/// The scalars of one AdamW step, prepared once for all elements. Held in double: see `adamw_update`.
struct adamw_coefficients {
  float clip = 1.0F;  ///< what gradients are multiplied by, in fp32, before anything else
  double beta1 = 0.0;
  double one_minus_beta1 = 1.0;
  double beta2 = 0.0;
  double one_minus_beta2 = 1.0;
  double keep = 1.0;             ///< 1 - lr * weight decay: the share of the parameter that decay leaves
  double rate = 0.0;             ///< lr / (1 - beta1^step)
  double root_correction = 1.0;  ///< 1 / sqrt(1 - beta2^step)
  double eps = 0.0;
};

/// What `adamw_coefficients` are made from. `step` counts from 1.
struct adamw_hyperparameters {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0.0F;
};

/// \throws usage_error when `step` is 0.
[[nodiscard]] adamw_coefficients make_adamw_coefficients(const adamw_hyperparameters& parameters, std::uint64_t step,
                                                         float clip = 1.0F);

/// One AdamW step (Loshchilov and Hutter, 2019, algorithm 2) in place. For each element, with `c` the coefficients,
/// states in fp32 and every other operation in double, unfused, in exactly this order:
///
///     g  = fp32(c.clip * gradient)
///     M  = c.beta1 * m + c.one_minus_beta1 * g
///     V  = c.beta2 * v + (c.one_minus_beta2 * g) * g
///     P  = c.keep * parameter - c.rate * (M / (sqrt(V) * c.root_correction + c.eps))
///     m, v, parameter = fp32(M), fp32(V), fp32(P)
///
/// So each result is the correctly rounded one but for errors of about 2^-51 of its largest term. It is within one ulp
/// of the exact step unless terms cancel to less than 2^-26 of their size; then the error is a few 2^-52 of that size.
/// No order of operations in fp32 alone does that: when `beta1 * m` and the gradient have opposite signs, or the change
/// is about as large as the parameter, errors of the terms are many ulps of the result.
///
/// All levels give the same bits: multiplication, division, square root and conversion are IEEE operations, and nothing
/// is fused. Non-finite inputs give what those operations give; NaN payloads may differ. Spans of one length, none
/// overlapping, of any alignment. Normal stores: in place, a cached line is better written than streamed past.
/// Thread-safe on disjoint spans. \throws usage_error on unequal lengths, unsupported_error when the CPU lacks `level`.
void adamw_update(std::span<float> parameter, std::span<const float> gradient, std::span<float> m, std::span<float> v,
                  const adamw_coefficients& c, simd_level level = best_simd_level());

}  // namespace forebay
