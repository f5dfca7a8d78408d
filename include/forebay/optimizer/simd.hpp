#pragma once

#include <cstdint>
#include <string_view>

namespace forebay {

/// The vector instructions that a kernel may use. Every level gives the same bits.
enum class simd_level : std::uint8_t { scalar, avx2, avx512 };

/// Whether this CPU (and its operating system) can run it; asked at run time.
[[nodiscard]] bool supported(simd_level level) noexcept;

/// The widest supported level.
[[nodiscard]] simd_level best_simd_level() noexcept;

[[nodiscard]] constexpr std::string_view to_string(simd_level level) {
  switch (level) {
    case simd_level::scalar:
      return "scalar";
    case simd_level::avx2:
      return "avx2";
    case simd_level::avx512:
      return "avx512";
  }
  return "?";
}

}  // namespace forebay
