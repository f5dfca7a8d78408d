#include <forebay/base/bytes.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

TEST(Bytes, LiteralsArePowersOf1024) {
  EXPECT_EQ(7_B, 7U);
  EXPECT_EQ(1_KiB, 1024U);
  EXPECT_EQ(1_MiB, 1024U * 1024U);
  EXPECT_EQ(5_GiB, 5368709120U);  // more than 32 bits hold
  EXPECT_EQ(1_TiB, 1099511627776U);
}

TEST(Bytes, RoundingAgreesWithCounting) {
  for (byte_count alignment : {1_B, 2_B, 8_B, 64_B}) {
    for (byte_count n = 0; n < 200; ++n) {
      byte_count up = n;
      while (up % alignment != 0) {
        ++up;
      }
      byte_count down = n;
      while (down % alignment != 0) {
        --down;
      }
      EXPECT_EQ(align_up(n, alignment), up);
      EXPECT_EQ(align_down(n, alignment), down);
      EXPECT_EQ(ceil_div(n, alignment), up / alignment);
    }
  }
  EXPECT_EQ(align_up((5_GiB) + 1, 4_KiB), 5_GiB + 4_KiB);
  EXPECT_EQ(ceil_div(10, 3), 4U);
}

TEST(Bytes, PowersOfTwo) {
  int count = 0;
  for (byte_count n = 0; n <= 4096; ++n) {
    count += is_power_of_two(n) ? 1 : 0;
  }
  EXPECT_EQ(count, 13);  // 2^0 .. 2^12; zero is none
  EXPECT_TRUE(is_power_of_two(byte_count{1} << 63U));
  EXPECT_FALSE(is_power_of_two(~byte_count{0}));
}

TEST(FormatBytes, UsesTheLargestFittingBinaryUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(513), "513 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(64_MiB), "64 MiB");
  EXPECT_EQ(format_bytes(5_GiB + 256_MiB), "5.25 GiB");
  EXPECT_EQ(format_bytes(3_TiB), "3 TiB");
  EXPECT_EQ(format_bytes(byte_count{1} << 50U), "1 PiB");
  EXPECT_EQ(format_bytes(byte_count{1} << 60U), "1 EiB");
}

TEST(FormatBytes, NeverShows1024OfAUnit) {
  EXPECT_EQ(format_bytes(1_MiB - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(1_GiB - 1), "1.00 GiB");
  EXPECT_EQ(format_bytes(~byte_count{0}), "16 EiB");
}

TEST(ParseBytes, TakesTheUnitsThatToolsWrite) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("17B"), 17U);
  EXPECT_EQ(parse_bytes("64MiB"), 64_MiB);
  EXPECT_EQ(parse_bytes("64mib"), 64_MiB);
  EXPECT_EQ(parse_bytes("64M"), 64_MiB);
  EXPECT_EQ(parse_bytes("2GB"), 2'000'000'000U);
  EXPECT_EQ(parse_bytes("2 kb"), 2000U);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes(" 0.5KiB "), 512U);
  EXPECT_EQ(parse_bytes("3t"), 3_TiB);
  EXPECT_EQ(parse_bytes("0"), 0U);
}

TEST(ParseBytes, WholeNumbersLoseNoDigit) {
  EXPECT_EQ(parse_bytes("18446744073709551615"), ~byte_count{0});
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993U);  // 2^53 + 1: no double holds it
  EXPECT_EQ(parse_bytes("9007199254740993KiB"), 9007199254740993U * 1024U);
  EXPECT_EQ(parse_bytes("18014398509481983KiB"), ~byte_count{0} - 1023U);
}

TEST(ParseBytes, ReadsBackWhatIsFormattedExactly) {
  for (unsigned shift = 0; shift < 64; ++shift) {
    const byte_count n = byte_count{1} << shift;
    EXPECT_EQ(parse_bytes(format_bytes(n)), n) << format_bytes(n);
  }
}

TEST(ParseBytes, FormattingLosesAtMostHalfAHundredthOfTheUnit) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const byte_count n = random() >> (random() % 63 + 1);
    const byte_count back = parse_bytes(format_bytes(n));
    const byte_count difference = n > back ? n - back : back - n;
    EXPECT_LE(static_cast<double>(difference), static_cast<double>(n) * 0.005001 + 1.0) << n;
  }
}

TEST(ParseBytes, RefusesWhatDoesNotFit) {
  for (const char* text : {"18446744073709551616", "16777216TiB", "18014398509481984KiB", "99999999999999999999999B",
                           "17179869184.0GiB", "1000000000TB"}) {
    EXPECT_THROW((void)parse_bytes(text), usage_error) << text;
  }
}

TEST(ParseBytes, RefusesJunkAndNamesIt) {
  for (const char* text : {"", " ", "MiB", "-1", "+1", "1 2", "6 4MiB", "1..5K", "1.2.3", ".", "1e3", "0x10", "64MiBs",
                           "64 Mi B", "nan", "inf", "64XB", "1,5G", "1K1"}) {
    try {
      (void)parse_bytes(text);
      ADD_FAILURE() << "'" << text << "' was taken for a size";
    } catch (const usage_error& e) {
      EXPECT_NE(std::string(e.what()).find("'" + std::string(text) + "'"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace forebay
