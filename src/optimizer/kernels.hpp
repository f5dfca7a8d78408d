#pragma once

#include <cstddef>

#include <forebay/optimizer/adamw_kernel.hpp>

/// The bodies behind the dispatching functions of the public headers, one per instruction set.
namespace forebay::detail {

struct adamw_arrays {
  float* parameter;
  const float* gradient;
  float* m;
  float* v;
  std::size_t size;
};

void adamw_scalar(const adamw_arrays& a, const adamw_coefficients& c) noexcept;
[[nodiscard]] double leaf_scalar(const float* x, std::size_t n) noexcept;
#if defined(__x86_64__)
void adamw_avx2(const adamw_arrays& a, const adamw_coefficients& c) noexcept;
void adamw_avx512(const adamw_arrays& a, const adamw_coefficients& c) noexcept;
[[nodiscard]] double leaf_avx2(const float* x, std::size_t n) noexcept;
[[nodiscard]] double leaf_avx512(const float* x, std::size_t n) noexcept;
#endif

inline constexpr std::size_t norm_lanes = 16;
/// The tree over a leaf's lanes; overwrites them.
[[nodiscard]] double add_lanes(double (&lanes)[norm_lanes]) noexcept;

/// \throws unsupported_error, naming the level, when the CPU lacks it.
void require(simd_level level);

}  // namespace forebay::detail
