#if defined(__x86_64__)

#include <immintrin.h>

#include <optimizer/kernels.hpp>

#define FOREBAY_TARGET __attribute__((target("avx2")))

namespace forebay::detail {

namespace {

struct constants4 {
  __m128 clip;
  __m256d beta1, one_minus_beta1, beta2, one_minus_beta2, keep, rate, root_correction, eps;
};

struct floats4 {
  __m128 p, m, v;
};

/// Four elements; the operations of adamw_scalar, in its order.
FOREBAY_TARGET inline floats4 step4(const constants4& c, const floats4& in, __m128 gradient) {
  const __m256d g = _mm256_cvtps_pd(_mm_mul_ps(c.clip, gradient));
  const __m256d m = _mm256_add_pd(_mm256_mul_pd(c.beta1, _mm256_cvtps_pd(in.m)), _mm256_mul_pd(c.one_minus_beta1, g));
  const __m256d v = _mm256_add_pd(_mm256_mul_pd(c.beta2, _mm256_cvtps_pd(in.v)),
                                  _mm256_mul_pd(_mm256_mul_pd(c.one_minus_beta2, g), g));
  const __m256d root = _mm256_mul_pd(_mm256_sqrt_pd(v), c.root_correction);
  const __m256d change = _mm256_div_pd(m, _mm256_add_pd(root, c.eps));
  const __m256d p = _mm256_sub_pd(_mm256_mul_pd(c.keep, _mm256_cvtps_pd(in.p)), _mm256_mul_pd(c.rate, change));
  return {_mm256_cvtpd_ps(p), _mm256_cvtpd_ps(m), _mm256_cvtpd_ps(v)};
}

FOREBAY_TARGET constants4 broadcast4(const adamw_coefficients& c) {
  return {_mm_set1_ps(c.clip),     _mm256_set1_pd(c.beta1),           _mm256_set1_pd(c.one_minus_beta1),
          _mm256_set1_pd(c.beta2), _mm256_set1_pd(c.one_minus_beta2), _mm256_set1_pd(c.keep),
          _mm256_set1_pd(c.rate),  _mm256_set1_pd(c.root_correction), _mm256_set1_pd(c.eps)};
}

}  // namespace

FOREBAY_TARGET void adamw_avx2(const adamw_arrays& a, const adamw_coefficients& coefficients) noexcept {
  const constants4 c = broadcast4(coefficients);
  std::size_t i = 0;
  for (; i + 4 <= a.size; i += 4) {
    const floats4 in{_mm_loadu_ps(a.parameter + i), _mm_loadu_ps(a.m + i), _mm_loadu_ps(a.v + i)};
    const floats4 out = step4(c, in, _mm_loadu_ps(a.gradient + i));
    _mm_storeu_ps(a.parameter + i, out.p);
    _mm_storeu_ps(a.m + i, out.m);
    _mm_storeu_ps(a.v + i, out.v);
  }
  if (i < a.size) {
    const auto rest = static_cast<int>(a.size - i);
    const __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32(rest), _mm_setr_epi32(0, 1, 2, 3));
    const floats4 in{_mm_maskload_ps(a.parameter + i, mask), _mm_maskload_ps(a.m + i, mask),
                     _mm_maskload_ps(a.v + i, mask)};
    const floats4 out = step4(c, in, _mm_maskload_ps(a.gradient + i, mask));
    _mm_maskstore_ps(a.parameter + i, mask, out.p);
    _mm_maskstore_ps(a.m + i, mask, out.m);
    _mm_maskstore_ps(a.v + i, mask, out.v);
  }
}

}  // namespace forebay::detail

#endif
