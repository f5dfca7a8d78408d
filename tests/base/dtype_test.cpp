#include <forebay/base/dtype.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

namespace forebay {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Nearest bf16 by comparing exact distances to both neighbours, ties to the even one; finite input. Works on values in
/// double, in which every fp32, and 2^128, is exact.
std::uint16_t nearest_even(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto toward_zero = static_cast<std::uint16_t>(bits >> 16U);
  const auto away = static_cast<std::uint16_t>(toward_zero + 1U);
  const auto magnitude = [](std::uint16_t half) {
    const int exponent = (half >> 7U) & 0xffU;
    const int mantissa = half & 0x7fU;
    return exponent == 0 ? std::ldexp(mantissa, -126 - 7) : std::ldexp(128 + mantissa, exponent - 127 - 7);
  };
  const double x = std::fabs(static_cast<double>(value));
  const double below = x - magnitude(toward_zero);
  const double above = magnitude(away) - x;
  if (below != above) {
    return below < above ? toward_zero : away;
  }
  return (toward_zero & 1U) == 0 ? toward_zero : away;
}

TEST(Bf16, EveryValueRoundTrips) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    bf16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(wide), bits << 16U);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(bf16(wide)))) << bits;
      EXPECT_EQ(bf16(wide).bits, bits | 0x40U);  // quiet, sign and payload kept
    } else {
      EXPECT_EQ(bf16(wide).bits, bits);
    }
  }
}

TEST(Bf16, RoundsToNearestEvenAroundEveryValue) {
  for (std::uint32_t high = 0; high <= 0xffffU; ++high) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const float value = from_bits(high << 16U | low);
      if (std::isfinite(value)) {
        ASSERT_EQ(bf16(value).bits, nearest_even(value)) << std::hexfloat << value;
      }
    }
  }
}

TEST(Bf16, RoundsToNearestEvenAtRandom) {
  std::mt19937 random(11);
  for (int i = 0; i < 500000; ++i) {
    const float value = from_bits(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) {
      ASSERT_EQ(bf16(value).bits, nearest_even(value)) << std::hexfloat << value;
    }
  }
}

TEST(Bf16, TheEdgesOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(bf16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(bf16(-infinity)), -infinity);
  EXPECT_EQ(static_cast<float>(bf16(std::numeric_limits<float>::max())), infinity);  // nearer to 2^128 than to below
  EXPECT_EQ(bf16(-0.0F).bits, 0x8000U);
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(from_bits(0x7f800001U)))));  // a payload in the low half alone
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(from_bits(0xffffffffU)))));
}

TEST(Dtype, SizesAndNames) {
  std::set<std::string> names;
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64, dtype::i64, dtype::i32, dtype::u8}) {
    const std::string name(to_string(type));
    names.insert(name);
    const auto digits = std::stoul(name.substr(name.find_first_of("0123456789")));
    EXPECT_EQ(size_of(type) * 8, digits) << name;  // the name says the bits
  }
  EXPECT_EQ(names.size(), 7U);
  static_assert(dtype_of<bf16>::value == dtype::bf16 && sizeof(bf16) == size_of(dtype::bf16));
  static_assert(dtype_of<float>::value == dtype::f32 && dtype_of<std::uint8_t>::value == dtype::u8);
  static_assert(std::is_trivially_copyable_v<bf16>);
}

}  // namespace
}  // namespace forebay
