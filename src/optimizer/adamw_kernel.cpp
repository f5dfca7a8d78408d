#include <cmath>
#include <string>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>
#include <forebay/optimizer/adamw_kernel.hpp>
#include <forebay/optimizer/kernel_bodies.hpp>
#include <optimizer/kernels.hpp>

namespace forebay {

adamw_coefficients make_adamw_coefficients(const adamw_hyperparameters& parameters, std::uint64_t step, float clip) {
  FOREBAY_EXPECTS(step > 0, "steps of AdamW count from 1");
  const double lr = parameters.lr;
  const double beta1 = parameters.beta1;
  const double beta2 = parameters.beta2;
  const auto exponent = static_cast<double>(step);
  adamw_coefficients c;
  c.clip = clip;
  c.beta1 = beta1;
  c.one_minus_beta1 = 1.0 - beta1;
  c.beta2 = beta2;
  c.one_minus_beta2 = 1.0 - beta2;
  c.keep = 1.0 - lr * static_cast<double>(parameters.weight_decay);
  c.rate = lr / (1.0 - std::pow(beta1, exponent));
  c.root_correction = 1.0 / std::sqrt(1.0 - std::pow(beta2, exponent));
  c.eps = parameters.eps;
  return c;
}

namespace detail {

void require(simd_level level) {
  if (!supported(level)) {
    throw unsupported_error("this CPU has no " + std::string(to_string(level)) + "; use best_simd_level()");
  }
}

void adamw_scalar(const adamw_arrays& a, const adamw_coefficients& c) noexcept {
  const kernels::adamw_step step{a.parameter, a.gradient, a.m, a.v, c};
  for (std::size_t i = 0; i < a.size; ++i) {
    step(i);
  }
}

}  // namespace detail

void adamw_update(std::span<float> parameter, std::span<const float> gradient, std::span<float> m, std::span<float> v,
                  const adamw_coefficients& c, simd_level level) {
  FOREBAY_EXPECTS(parameter.size() == gradient.size() && parameter.size() == m.size() && parameter.size() == v.size(),
                  "parameter, gradient, m and v have one length");
  detail::require(level);
  const detail::adamw_arrays arrays{parameter.data(), gradient.data(), m.data(), v.data(), parameter.size()};
  switch (level) {
#if defined(__x86_64__)
    case simd_level::avx512:
      return detail::adamw_avx512(arrays, c);
    case simd_level::avx2:
      return detail::adamw_avx2(arrays, c);
#endif
    default:
      return detail::adamw_scalar(arrays, c);
  }
}

}  // namespace forebay
