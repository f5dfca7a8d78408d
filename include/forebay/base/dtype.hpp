#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include <forebay/base/bytes.hpp>
#include <forebay/base/host_device.hpp>

namespace forebay {

/// Upper half of an IEEE fp32. Conversion from float rounds to nearest even and keeps NaNs NaN.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  FOREBAY_HOST_DEVICE explicit bf16(float value) noexcept {
    const auto b = std::bit_cast<std::uint32_t>(value);
    const bool nan = (b & 0x7fffffffU) > 0x7f800000U;
    bits = nan ? static_cast<std::uint16_t>((b >> 16U) | 0x40U)
               : static_cast<std::uint16_t>((b + 0x7fffU + ((b >> 16U) & 1U)) >> 16U);
  }
  [[nodiscard]] FOREBAY_HOST_DEVICE explicit operator float() const noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16U);
  }
};

enum class dtype : std::uint8_t { f32, bf16, f16, f64, i64, i32, u8 };

[[nodiscard]] constexpr byte_count size_of(dtype type) {
  switch (type) {
    case dtype::f64:
    case dtype::i64:
      return 8;
    case dtype::f32:
    case dtype::i32:
      return 4;
    case dtype::bf16:
    case dtype::f16:
      return 2;
    case dtype::u8:
      return 1;
  }
  return 0;
}

/// The name that safetensors uses: "F32", "BF16", ...
[[nodiscard]] constexpr std::string_view to_string(dtype type) {
  switch (type) {
    case dtype::f32:
      return "F32";
    case dtype::bf16:
      return "BF16";
    case dtype::f16:
      return "F16";
    case dtype::f64:
      return "F64";
    case dtype::i64:
      return "I64";
    case dtype::i32:
      return "I32";
    case dtype::u8:
      return "U8";
  }
  return "?";
}

/// The dtype whose elements a C++ type represents; `std::byte` and others have none.
template <typename T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<bf16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_of<double> {
  static constexpr dtype value = dtype::f64;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr dtype value = dtype::i64;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr dtype value = dtype::i32;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr dtype value = dtype::u8;
};

}  // namespace forebay
