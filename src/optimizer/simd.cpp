#include <forebay/optimizer/simd.hpp>

namespace forebay {

bool supported(simd_level level) noexcept {
#if defined(__x86_64__)
  switch (level) {
    case simd_level::scalar:
      return true;
    case simd_level::avx2:
      return __builtin_cpu_supports("avx2") != 0;
    case simd_level::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  }
  return false;
#else
  return level == simd_level::scalar;
#endif
}

simd_level best_simd_level() noexcept {
  static const simd_level best = supported(simd_level::avx512) ? simd_level::avx512
                                 : supported(simd_level::avx2) ? simd_level::avx2
                                                               : simd_level::scalar;
  return best;
}

}  // namespace forebay
