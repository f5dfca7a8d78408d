#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <forebay/base/host_device.hpp>

namespace train_gpt {

/// e^x in double by the C library; in float by a polynomial that the compiler turns into vector code, within 2 ulp.
/// The argument is clamped to where the result is a normal number; NaN stays NaN.
[[nodiscard]] FOREBAY_HOST_DEVICE inline double exponential(double x) { return std::exp(x); }
[[nodiscard]] FOREBAY_HOST_DEVICE inline float exponential(float x) {
  constexpr float lowest = -87.0F;
  constexpr float highest = 88.0F;
  constexpr float log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F;  // few bits, so that n * ln2_high is exact
  constexpr float ln2_low = -2.12194440e-4F;
  constexpr float round_to_integer = 12582912.0F;  // 1.5 * 2^23: adding it drops the fraction
  x = x < lowest ? lowest : x;
  x = x > highest ? highest : x;
  const float shifted = x * log2_e + round_to_integer;
  const float n = shifted - round_to_integer;
  const float r = (x - n * ln2_high) - n * ln2_low;
  // Taylor series: |r| <= ln(2)/2, so the first term left out is below half an ulp of the result.
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U;
  return p * std::bit_cast<float>(exponent);
}

/// GELU in its tanh form: x / (1 + exp(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
template <typename T>
[[nodiscard]] FOREBAY_HOST_DEVICE inline T gelu(T x) {
  constexpr auto two_root = static_cast<T>(1.5957691216057308);  // 2 sqrt(2/pi)
  constexpr auto cubic = static_cast<T>(0.044715);
  return x / (T{1} + exponential(-two_root * (x + cubic * x * x * x)));
}

/// Its derivative: s + x s (1 - s) 2 du/dx, where s = 1 / (1 + exp(-2u)).
template <typename T>
[[nodiscard]] FOREBAY_HOST_DEVICE inline T gelu_derivative(T x) {
  constexpr auto two_root = static_cast<T>(1.5957691216057308);
  constexpr auto cubic = static_cast<T>(0.044715);
  const T s = T{1} / (T{1} + exponential(-two_root * (x + cubic * x * x * x)));
  return s + x * s * (T{1} - s) * two_root * (T{1} + T{3} * cubic * x * x);
}

/// The sum of term(0) ... term(n - 1) over 16 fixed partial sums: vector code, and always the same order.
template <typename T, typename Term>
[[nodiscard]] inline T lane_sum(std::size_t n, const Term& term) {
  constexpr std::size_t lanes = 16;
  std::array<T, lanes> sums{};
  const std::size_t whole = n / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sums[lane] += term(i + lane);
    }
  }
  for (std::size_t lane = 0; lane < n - whole; ++lane) {
    sums[lane] += term(whole + lane);
  }
  for (std::size_t width = lanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      sums[lane] += sums[lane + width];
    }
  }
  return sums[0];
}

}  // namespace train_gpt
