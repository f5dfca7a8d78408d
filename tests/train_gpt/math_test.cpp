#include "train_gpt/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace train_gpt {
namespace {

TEST(exponential, is_within_two_ulp_of_the_double_result) {
  for (int i = -86'990; i <= 87'990; ++i) {
    const float x = static_cast<float>(i) * 1e-3F;
    const double want = std::exp(static_cast<double>(x));
    const auto nearest = static_cast<float>(want);
    const double ulp = static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity())) -
                       static_cast<double>(nearest);
    ASSERT_NEAR(static_cast<double>(exponential(x)), want, 2.0 * ulp) << "x = " << x;
  }
}

TEST(exponential, clamps_instead_of_overflowing_and_keeps_nan) {
  EXPECT_TRUE(std::isnormal(exponential(1e30F)));
  EXPECT_TRUE(std::isnormal(exponential(-1e30F)));
  EXPECT_LT(exponential(-1e30F), 1e-37F);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST(gelu, is_its_tanh_form) {
  for (double x = -8.0; x <= 8.0; x += 0.01) {
    const double u = std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    const double want = 0.5 * x * (1.0 + std::tanh(u));
    EXPECT_NEAR(gelu(x), want, 1e-14);
    EXPECT_NEAR(static_cast<double>(gelu(static_cast<float>(x))), want, 2e-6);
  }
}

TEST(gelu, derivative_is_its_slope) {
  for (double x = -6.0; x <= 6.0; x += 0.05) {
    const double h = 1e-5;
    EXPECT_NEAR(gelu_derivative(x), (gelu(x + h) - gelu(x - h)) / (2.0 * h), 1e-9) << "x = " << x;
  }
}

TEST(lane_sum, adds_every_term_once) {
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<int> seen(n, 0);
    const double sum = lane_sum<double>(n, [&](std::size_t i) {
      ++seen.at(i);
      return std::ldexp(1.0, static_cast<int>(i % 50));
    });
    double want = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(seen[i], 1);
      want += std::ldexp(1.0, static_cast<int>(i % 50));
    }
    EXPECT_EQ(sum, want);  // powers of two: exact in any order
  }
}

}  // namespace
}  // namespace train_gpt
