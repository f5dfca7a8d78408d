#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace forebay::testing_optimizer {

/// The published algorithm, written from the paper and the options alone, in any floating-point type.
struct reference_options {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0.0F;
  float clip = 1.0F;
};

template <typename Real>
struct reference_result {
  Real parameter;
  Real m;
  Real v;
  Real largest_parameter_term;  ///< what cancellation in the parameter is measured against
  Real largest_m_term;
};

/// One step of one element from an fp32 state; the gradient is clipped in fp32, as promised.
template <typename Real>
reference_result<Real> reference_step(float parameter, float gradient, float m, float v, const reference_options& o,
                                      std::uint64_t step) {
  const Real b1 = o.beta1;
  const Real b2 = o.beta2;
  const auto t = static_cast<Real>(step);
  const float clipped = gradient * o.clip;
  const Real g = clipped;
  reference_result<Real> r{};
  r.m = b1 * Real{m} + (Real{1} - b1) * g;
  r.v = b2 * Real{v} + (Real{1} - b2) * g * g;
  const Real m_hat = r.m / (Real{1} - std::pow(b1, t));
  const Real v_hat = r.v / (Real{1} - std::pow(b2, t));
  const Real kept = Real{parameter} - Real{o.lr} * Real{o.weight_decay} * Real{parameter};
  const Real change = Real{o.lr} * m_hat / (std::sqrt(v_hat) + Real{o.eps});
  r.parameter = kept - change;
  r.largest_parameter_term = std::max(std::abs(kept), std::abs(change));
  r.largest_m_term = std::max(std::abs(b1 * Real{m}), std::abs((Real{1} - b1) * g));
  return r;
}

/// The spacing of fp32 numbers at |x|.
inline long double ulp_at(long double x) {
  const int exponent = x == 0.0L ? -126 : std::max(std::ilogb(x), -126);
  return std::ldexp(1.0L, exponent - 23);
}

/// How far an fp32 is from the exact value, in units of the exact value's ulp.
inline long double ulps_between(float got, long double exact) {
  return std::abs(static_cast<long double>(got) - exact) / ulp_at(exact);
}

/// AdamW on plain vectors, all in memory, in the arithmetic that the library documents: states in fp32, the step in
/// double and in this order. For comparisons to the bit.
struct plain_adamw {
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> m;
  std::vector<std::vector<float>> v;

  explicit plain_adamw(std::vector<std::vector<float>> initial) : parameters(std::move(initial)) {
    for (const auto& p : parameters) {
      m.emplace_back(p.size(), 0.0F);
      v.emplace_back(p.size(), 0.0F);
    }
  }

  void step_tensor(std::size_t k, const std::vector<float>& gradients, const reference_options& o, std::uint64_t step) {
    const double b1 = o.beta1;
    const double b2 = o.beta2;
    const double rate = double{o.lr} / (1.0 - std::pow(b1, static_cast<double>(step)));
    const double correction = 1.0 / std::sqrt(1.0 - std::pow(b2, static_cast<double>(step)));
    const double keep = 1.0 - double{o.lr} * double{o.weight_decay};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const float clipped = gradients[i] * o.clip;
      const double g = clipped;
      const double new_m = b1 * double{m[k][i]} + (1.0 - b1) * g;
      const double new_v = b2 * double{v[k][i]} + (1.0 - b2) * g * g;
      const double denominator = std::sqrt(new_v) * correction + double{o.eps};
      parameters[k][i] = static_cast<float>(keep * double{parameters[k][i]} - rate * (new_m / denominator));
      m[k][i] = static_cast<float>(new_m);
      v[k][i] = static_cast<float>(new_v);
    }
  }
};

}  // namespace forebay::testing_optimizer
