#if defined(__x86_64__)

#include <immintrin.h>

#include <optimizer/kernels.hpp>

#if defined(__GNUC__) && !defined(__clang__)
// gcc 12's own headers pass an undefined register as the source of a full mask (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define FOREBAY_TARGET __attribute__((target("avx512f,avx512vl")))

namespace forebay::detail {

namespace {

struct constants8 {
  __m256 clip;
  __m512d beta1, one_minus_beta1, beta2, one_minus_beta2, keep, rate, root_correction, eps;
};

struct floats8 {
  __m256 p, m, v;
};

/// Eight elements; the operations of adamw_scalar, in its order.
FOREBAY_TARGET inline floats8 step8(const constants8& c, const floats8& in, __m256 gradient) {
  const __m512d g = _mm512_cvtps_pd(_mm256_mul_ps(c.clip, gradient));
  const __m512d m = _mm512_add_pd(_mm512_mul_pd(c.beta1, _mm512_cvtps_pd(in.m)), _mm512_mul_pd(c.one_minus_beta1, g));
  const __m512d v = _mm512_add_pd(_mm512_mul_pd(c.beta2, _mm512_cvtps_pd(in.v)),
                                  _mm512_mul_pd(_mm512_mul_pd(c.one_minus_beta2, g), g));
  const __m512d root = _mm512_mul_pd(_mm512_sqrt_pd(v), c.root_correction);
  const __m512d change = _mm512_div_pd(m, _mm512_add_pd(root, c.eps));
  const __m512d p = _mm512_sub_pd(_mm512_mul_pd(c.keep, _mm512_cvtps_pd(in.p)), _mm512_mul_pd(c.rate, change));
  return {_mm512_cvtpd_ps(p), _mm512_cvtpd_ps(m), _mm512_cvtpd_ps(v)};
}

FOREBAY_TARGET constants8 broadcast8(const adamw_coefficients& c) {
  return {_mm256_set1_ps(c.clip),  _mm512_set1_pd(c.beta1),           _mm512_set1_pd(c.one_minus_beta1),
          _mm512_set1_pd(c.beta2), _mm512_set1_pd(c.one_minus_beta2), _mm512_set1_pd(c.keep),
          _mm512_set1_pd(c.rate),  _mm512_set1_pd(c.root_correction), _mm512_set1_pd(c.eps)};
}

}  // namespace

FOREBAY_TARGET void adamw_avx512(const adamw_arrays& a, const adamw_coefficients& coefficients) noexcept {
  const constants8 c = broadcast8(coefficients);
  std::size_t i = 0;
  for (; i + 8 <= a.size; i += 8) {
    const floats8 in{_mm256_loadu_ps(a.parameter + i), _mm256_loadu_ps(a.m + i), _mm256_loadu_ps(a.v + i)};
    const floats8 out = step8(c, in, _mm256_loadu_ps(a.gradient + i));
    _mm256_storeu_ps(a.parameter + i, out.p);
    _mm256_storeu_ps(a.m + i, out.m);
    _mm256_storeu_ps(a.v + i, out.v);
  }
  if (i < a.size) {
    const auto mask = static_cast<__mmask8>((1U << (a.size - i)) - 1U);
    const floats8 in{_mm256_maskz_loadu_ps(mask, a.parameter + i), _mm256_maskz_loadu_ps(mask, a.m + i),
                     _mm256_maskz_loadu_ps(mask, a.v + i)};
    const floats8 out = step8(c, in, _mm256_maskz_loadu_ps(mask, a.gradient + i));
    _mm256_mask_storeu_ps(a.parameter + i, mask, out.p);
    _mm256_mask_storeu_ps(a.m + i, mask, out.m);
    _mm256_mask_storeu_ps(a.v + i, mask, out.v);
  }
}

}  // namespace forebay::detail

#endif
