#if defined(__x86_64__)

#include <immintrin.h>

#include <optimizer/kernels.hpp>

#if defined(__GNUC__) && !defined(__clang__)
// gcc 12's own headers pass an undefined register as the source of a full mask (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define FOREBAY_AVX2 __attribute__((target("avx2")))
#define FOREBAY_AVX512 __attribute__((target("avx512f,avx512vl")))

// An fp32 times itself is exact in double, so a product and a sum give the bits of a fused multiply-add; and a sum of
// squares starts at +0, so that adding the zeros of masked-out elements changes nothing.
namespace forebay::detail {

namespace {

FOREBAY_AVX2 inline __m256d add_square(__m256d sum, __m128 x) {
  const __m256d wide = _mm256_cvtps_pd(x);
  return _mm256_add_pd(sum, _mm256_mul_pd(wide, wide));
}

FOREBAY_AVX512 inline __m512d add_square(__m512d sum, __m256 x) {
  const __m512d wide = _mm512_cvtps_pd(x);
  return _mm512_add_pd(sum, _mm512_mul_pd(wide, wide));
}

FOREBAY_AVX2 inline __m128 load_first(const float* x, int count) {
  return _mm_maskload_ps(x, _mm_cmpgt_epi32(_mm_set1_epi32(count), _mm_setr_epi32(0, 1, 2, 3)));
}

}  // namespace

FOREBAY_AVX2 double leaf_avx2(const float* x, std::size_t n) noexcept {
  __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  std::size_t i = 0;
  for (; i + norm_lanes <= n; i += norm_lanes) {
    for (std::size_t k = 0; k < 4; ++k) {
      sum[k] = add_square(sum[k], _mm_loadu_ps(x + i + 4 * k));
    }
  }
  for (std::size_t k = 0; i < n; ++k) {
    const std::size_t count = n - i < 4 ? n - i : 4;
    sum[k] = add_square(sum[k], load_first(x + i, static_cast<int>(count)));
    i += count;
  }
  alignas(32) double lanes[norm_lanes];
  for (std::size_t k = 0; k < 4; ++k) {
    _mm256_store_pd(lanes + 4 * k, sum[k]);
  }
  return add_lanes(lanes);
}

FOREBAY_AVX512 double leaf_avx512(const float* x, std::size_t n) noexcept {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();
  std::size_t i = 0;
  for (; i + norm_lanes <= n; i += norm_lanes) {
    low = add_square(low, _mm256_loadu_ps(x + i));
    high = add_square(high, _mm256_loadu_ps(x + i + 8));
  }
  if (i < n) {
    const unsigned mask = (1U << (n - i)) - 1U;
    low = add_square(low, _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask & 0xffU), x + i));
    // Masked-out addresses are never touched, but a pointer past the end would not be one at all.
    if (n - i > 8) {
      high = add_square(high, _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask >> 8U), x + i + 8));
    }
  }
  alignas(64) double lanes[norm_lanes];
  _mm512_store_pd(lanes, low);
  _mm512_store_pd(lanes + 8, high);
  return add_lanes(lanes);
}

}  // namespace forebay::detail

#endif
