#include <forebay/optimizer/kernel_bodies.hpp>

#include <bit>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/device/kernel_team.hpp>

namespace forebay {
namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> exponent(-60.0F, 60.0F);
  std::vector<float> values(n);
  for (float& value : values) {
    value = std::exp2(exponent(random)) * (random() % 2 == 0 ? 1.0F : -1.0F);
  }
  return values;
}

// The CPU's kernels at their best level are vector code that shares nothing with the body.
TEST(kernel_bodies, adamw_gives_the_bits_of_the_cpu) {
  const auto gradient = random_floats(10'007, 1);
  auto p = random_floats(gradient.size(), 2);
  auto m = random_floats(gradient.size(), 3);
  auto v = random_floats(gradient.size(), 4);
  for (float& value : v) {
    value = std::abs(value);
  }
  auto p2 = p;
  auto m2 = m;
  auto v2 = v;
  const adamw_coefficients c = make_adamw_coefficients({1e-2F, 0.9F, 0.99F, 1e-8F, 0.1F}, 3, 0.7F);
  adamw_update(p, gradient, m, v, c);
  const kernels::adamw_step body{p2.data(), gradient.data(), m2.data(), v2.data(), c};
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    body(i);
  }
  EXPECT_EQ(p, p2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
}

TEST(kernel_bodies, norm_gives_the_bits_of_the_cpu) {
  for (const std::size_t n : {1UL, 15UL, 16UL, 17UL, 4095UL, 4096UL, 4097UL, 3 * 4096UL + 100}) {
    const auto gradient = random_floats(n, static_cast<unsigned>(n));
    std::vector<double> leaves(norm_leaves(n));
    const kernels::norm_leaf body{gradient.data(), n, leaves.data()};
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      body(host_team{}, i);
    }
    EXPECT_EQ(tree_sum(leaves), sum_of_squares(gradient)) << n;
  }
}

TEST(kernel_bodies, casts_round_to_nearest_even) {
  const std::vector<float> from{1.0F,
                                std::bit_cast<float>(0x3f808000U),  // halfway: down to even
                                std::bit_cast<float>(0x3f818000U),  // halfway: up to even
                                std::bit_cast<float>(0x3f808001U),  // above halfway
                                std::numeric_limits<float>::infinity(),
                                std::bit_cast<float>(0x7f800001U)};
  const std::vector<std::uint16_t> want{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x7fc0};
  std::vector<bf16> narrow(from.size());
  std::vector<float> wide(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    kernels::cast_to_bf16{from.data(), narrow.data()}(i);
    kernels::cast_from_bf16{narrow.data(), wide.data()}(i);
    EXPECT_EQ(narrow[i].bits, want[i]) << i;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::uint32_t{want[i]} << 16U) << i;
  }
}

TEST(kernel_bodies, scale_is_one_product) {
  const auto from = random_floats(100, 5);
  std::vector<float> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    kernels::scale_step{from.data(), 0.3F, to.data()}(i);
    EXPECT_EQ(to[i], static_cast<float>(double{from[i]} * double{0.3F}));  // exact in double, then rounded once
  }
}

TEST(host_team, largest_and_sum_meet_each_term_once) {
  const host_team team;
  for (std::size_t n = 0; n < 70; ++n) {
    EXPECT_EQ(team.sum<double>(n, [](std::size_t i) { return static_cast<double>(i + 1); }),
              static_cast<double>(n * (n + 1) / 2));
    EXPECT_EQ(team.largest(n, -1, [&](std::size_t i) { return static_cast<int>(i * 37 % 71); }), [&] {
      int most = -1;
      for (std::size_t i = 0; i < n; ++i) {
        most = std::max(most, static_cast<int>(i * 37 % 71));
      }
      return most;
    }());
  }
}

}  // namespace
}  // namespace forebay
