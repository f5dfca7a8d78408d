#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <forebay/base/error.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

#include "guarded_floats.hpp"

namespace forebay {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<simd_level> levels() {
  std::vector<simd_level> found;
  for (const simd_level level : {simd_level::scalar, simd_level::avx2, simd_level::avx512}) {
    if (supported(level)) {
      found.push_back(level);
    }
  }
  return found;
}

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) {
    value = normal(random) * std::exp2(static_cast<float>(random() % 40) - 20.0F);
  }
  return x;
}

/// The documented tree, written the other way round: split at the largest power of two below the count.
double split_sum(const std::vector<double>& values, std::size_t first, std::size_t count) {
  if (count == 0) {
    return 0.0;
  }
  if (count == 1) {
    return values[first];
  }
  const std::size_t left = std::bit_floor(count - 1);
  return split_sum(values, first, left) + split_sum(values, first + left, count - left);
}

double documented_leaf(const float* x, std::size_t n) {
  std::vector<double> lanes(16, 0.0);
  for (std::size_t lane = 0; lane < 16; ++lane) {
    for (std::size_t i = lane; i < n; i += 16) {
      lanes[lane] += double{x[i]} * double{x[i]};
    }
  }
  while (lanes.size() > 1) {
    std::vector<double> half(lanes.size() / 2);
    for (std::size_t j = 0; j < half.size(); ++j) {
      half[j] = lanes[j] + lanes[j + half.size()];
    }
    lanes = half;
  }
  return lanes[0];
}

TEST(gradient_norm, leaves_have_the_documented_shape_at_every_level) {
  std::vector<std::size_t> sizes{1023, 1024, 1025, 4079, 4080, 4081, 4095, 4096};
  for (std::size_t n = 0; n <= 70; ++n) {
    sizes.push_back(n);
  }
  for (const std::size_t n : sizes) {
    const testing_optimizer::guarded_floats buffer(n);
    const std::vector<float> x = noise(n, static_cast<unsigned>(n));
    std::copy(x.begin(), x.end(), buffer.span().begin());
    for (const simd_level level : levels()) {
      EXPECT_EQ(leaf_sum_of_squares(buffer.span(), level), documented_leaf(x.data(), n))
          << to_string(level) << " " << n;
    }
  }
}

TEST(gradient_norm, tensors_have_the_documented_shape_at_every_level) {
  for (const std::size_t n : {1U, 4096U, 4097U, 12'288U, 12'289U, 100'000U, 300'001U}) {
    const std::vector<float> x = noise(n, static_cast<unsigned>(n));
    std::vector<double> leaves;
    for (std::size_t first = 0; first < n; first += 4096) {
      leaves.push_back(documented_leaf(x.data() + first, std::min<std::size_t>(4096, n - first)));
    }
    EXPECT_EQ(leaves.size(), norm_leaves(n));
    for (const simd_level level : levels()) {
      EXPECT_EQ(sum_of_squares(x, level), split_sum(leaves, 0, leaves.size())) << to_string(level) << " " << n;
    }
  }
}

TEST(gradient_norm, agrees_with_extended_precision) {
  const std::vector<float> x = noise(1'000'003, 5);
  long double exact = 0.0L;
  for (const float value : x) {
    exact += static_cast<long double>(value) * static_cast<long double>(value);
  }
  // At most 256 additions in a lane, 4 over lanes, 8 over leaves: 268 roundings of 2^-53.
  for (const simd_level level : levels()) {
    EXPECT_NEAR(sum_of_squares(x, level), static_cast<double>(exact), static_cast<double>(exact) * 268 * 0x1p-53);
  }
}

TEST(gradient_norm, whole_numbers_are_exact) {
  EXPECT_EQ(sum_of_squares(std::vector<float>(10'001, -3.0F)), 90'009.0);
  EXPECT_EQ(sum_of_squares({}), 0.0);
}

TEST(gradient_norm, tree_adds_neighbours) {
  for (std::size_t n = 0; n < 200; ++n) {
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i) {
      values.push_back(std::exp2(static_cast<double>(i * 37 % 101)) / 3.0);
    }
    const double expected = split_sum(values, 0, n);
    EXPECT_EQ(tree_sum(values), expected) << n;
  }
}

TEST(gradient_norm, is_finite_exactly_when_every_element_is) {
  const float largest = std::numeric_limits<float>::max();
  for (const simd_level level : levels()) {
    EXPECT_TRUE(std::isfinite(sum_of_squares(std::vector<float>(100'000, largest), level)));
    for (const float bad : {infinity, -infinity, not_a_number}) {
      for (std::size_t at = 0; at < 67; ++at) {
        std::vector<float> x(67, 1.0F);
        x[at] = bad;
        EXPECT_FALSE(std::isfinite(sum_of_squares(x, level))) << to_string(level) << " " << at;
      }
      std::vector<float> both(9000, 1.0F);
      both[17] = infinity;
      both[8999] = bad;
      EXPECT_FALSE(std::isfinite(sum_of_squares(both, level))) << to_string(level);
    }
  }
}

TEST(gradient_norm, scale_brings_the_norm_to_the_limit) {
  EXPECT_EQ(clip_scale(8.0, 2.0F), 0.25F);
  EXPECT_EQ(clip_scale(2.0, 2.0F), 1.0F);
  EXPECT_EQ(clip_scale(1.0, 2.0F), 1.0F);
  EXPECT_EQ(clip_scale(8.0, 0.0F), 1.0F);
  EXPECT_EQ(clip_scale(0.0, 1.0F), 1.0F);
}

TEST(gradient_norm, refuses_a_longer_leaf) {
  const std::vector<float> x(4097, 1.0F);
  EXPECT_THROW(static_cast<void>(leaf_sum_of_squares(x)), usage_error);
}

}  // namespace
}  // namespace forebay
