#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <forebay/base/error.hpp>
#include <forebay/optimizer/adamw_kernel.hpp>

#include "adamw_reference.hpp"
#include "guarded_floats.hpp"

namespace forebay {
namespace {

using testing_optimizer::guarded_floats;
using testing_optimizer::reference_options;
using testing_optimizer::reference_step;
using testing_optimizer::ulp_at;

std::vector<simd_level> levels() {
  std::vector<simd_level> found;
  for (const simd_level level : {simd_level::scalar, simd_level::avx2, simd_level::avx512}) {
    if (supported(level)) {
      found.push_back(level);
    }
  }
  return found;
}

adamw_coefficients coefficients(const reference_options& o, std::uint64_t step) {
  return make_adamw_coefficients({o.lr, o.beta1, o.beta2, o.eps, o.weight_decay}, step, o.clip);
}

struct state {
  std::vector<float> parameter, gradient, m, v;
  explicit state(std::size_t n) : parameter(n), gradient(n), m(n), v(n) {}
  void update(const adamw_coefficients& c, simd_level level) { adamw_update(parameter, gradient, m, v, c, level); }
};

/// Of either sign, magnitudes from 2^low to 2^high, evenly in the exponent.
float any_magnitude(std::mt19937& random, int low, int high) {
  const float size =
      std::exp2(std::uniform_real_distribution<float>(static_cast<float>(low), static_cast<float>(high))(random));
  return random() % 2 == 0 ? size : -size;
}

state ordinary(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  state s(n);
  for (std::size_t i = 0; i < n; ++i) {
    s.parameter[i] = 0.02F * normal(random);
    s.gradient[i] = 1e-2F * normal(random);
    s.m[i] = 1e-3F * normal(random);
    s.v[i] = 1e-5F * std::abs(normal(random));
  }
  return s;
}

state wild(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  state s(n);
  for (std::size_t i = 0; i < n; ++i) {
    s.parameter[i] = any_magnitude(random, -60, 60);
    s.gradient[i] = any_magnitude(random, -140, 60);
    s.m[i] = any_magnitude(random, -149, 60);
    s.v[i] = std::abs(any_magnitude(random, -149, 100));
  }
  return s;
}

/// Terms of m, and of the parameter, that nearly cancel: equal but for their last few bits.
state cancelling(std::size_t n, unsigned seed, const reference_options& o, std::uint64_t step) {
  std::mt19937 random(seed);
  state s = ordinary(n, seed);
  const auto nudge = [&](double x) {
    const int bits = static_cast<int>(random() % 24);
    return static_cast<float>(x * (1.0 + std::ldexp(static_cast<double>(random() % 3) - 1.0, -bits)));
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 2 == 0) {
      s.gradient[i] = nudge(-double{o.beta1} * s.m[i] / (1.0 - double{o.beta1}) / double{o.clip});
    } else {
      const auto r = reference_step<long double>(0.0F, s.gradient[i], s.m[i], s.v[i], o, step);
      s.parameter[i] = nudge(static_cast<double>(-r.parameter));
    }
  }
  return s;
}

/// Largest distance from the exact step, in ulps of the result; where terms cancel by more than 2^20, of what is left
/// at that factor, since beyond it not even double arithmetic (the reference of most others) has the digits.
long double worst_ulps(const state& before, const state& after, const reference_options& o, std::uint64_t step) {
  long double worst = 0.0L;
  for (std::size_t i = 0; i < before.m.size(); ++i) {
    const auto exact =
        reference_step<long double>(before.parameter[i], before.gradient[i], before.m[i], before.v[i], o, step);
    const auto distance = [](float got, long double wanted, long double largest_term) {
      const long double unit = ulp_at(std::max(std::abs(wanted), std::ldexp(largest_term, -20)));
      return std::abs(static_cast<long double>(got) - wanted) / unit;
    };
    worst = std::max({worst, distance(after.parameter[i], exact.parameter, exact.largest_parameter_term),
                      distance(after.m[i], exact.m, exact.largest_m_term), distance(after.v[i], exact.v, exact.v)});
  }
  return worst;
}

const std::vector<reference_options>& option_sets() {
  static const std::vector<reference_options> sets{
      {},
      {.lr = 3e-4F, .weight_decay = 0.1F, .clip = 0.37F},
      {.lr = 0.5F, .beta1 = 0.0F, .beta2 = 0.0F, .eps = 1e-3F},
      {.lr = 1e-2F, .beta1 = 0.3F, .beta2 = 0.95F, .eps = 1e-15F, .weight_decay = 1.0F},
  };
  return sets;
}

TEST(adamw_kernel, stays_within_one_ulp_of_the_exact_step) {
  constexpr std::size_t n = 5'000;
  unsigned seed = 1;
  for (const reference_options& o : option_sets()) {
    for (const std::uint64_t step : {1U, 2U, 10U, 1'000U, 1'000'000U}) {
      for (const state& before : {ordinary(n, seed), wild(n, seed), cancelling(n, seed, o, step)}) {
        for (const simd_level level : levels()) {
          state after = before;
          after.update(coefficients(o, step), level);
          EXPECT_LE(worst_ulps(before, after, o, step), 1.0L) << to_string(level) << ", step " << step;
        }
      }
      ++seed;
    }
  }
}

// What a check against a plain double-precision Adam sees: no exception for cancellation, many elements.
TEST(adamw_kernel, stays_within_two_ulps_of_a_double_reference_over_steps) {
  constexpr std::size_t n = 50'000;
  const reference_options o{.lr = 1e-3F, .weight_decay = 0.01F};
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  state s = ordinary(n, 7);
  std::fill(s.m.begin(), s.m.end(), 0.0F);
  std::fill(s.v.begin(), s.v.end(), 0.0F);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    for (float& g : s.gradient) {
      g = normal(random);
    }
    const state before = s;
    s.update(coefficients(o, step), best_simd_level());
    for (std::size_t i = 0; i < n; ++i) {
      const auto r = reference_step<double>(before.parameter[i], before.gradient[i], before.m[i], before.v[i], o, step);
      ASSERT_LE(testing_optimizer::ulps_between(s.parameter[i], r.parameter), 2.0L) << i << " at step " << step;
      ASSERT_LE(testing_optimizer::ulps_between(s.m[i], r.m), 2.0L) << i << " at step " << step;
      ASSERT_LE(testing_optimizer::ulps_between(s.v[i], r.v), 2.0L) << i << " at step " << step;
    }
  }
}

std::vector<std::size_t> awkward_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 0; n <= 70; ++n) {
    sizes.push_back(n);
  }
  sizes.insert(sizes.end(), {1023, 1024, 1025});
  return sizes;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

TEST(adamw_kernel, levels_agree_to_the_bit_and_write_nothing_else) {
  const reference_options o{.lr = 1e-2F, .weight_decay = 0.1F, .clip = 0.7F};
  for (const std::size_t n : awkward_sizes()) {
    for (unsigned tensor = 0; tensor < 3; ++tensor) {
      const state before = tensor == 0 ? wild(n, 11) : tensor == 1 ? ordinary(n, 12) : cancelling(n, 13, o, 3);
      state expected = before;
      expected.update(coefficients(o, 3), simd_level::scalar);
      for (const simd_level level : levels()) {
        const guarded_floats p(n), g(n), m(n), v(n);
        std::copy(before.parameter.begin(), before.parameter.end(), p.span().begin());
        std::copy(before.gradient.begin(), before.gradient.end(), g.span().begin());
        std::copy(before.m.begin(), before.m.end(), m.span().begin());
        std::copy(before.v.begin(), before.v.end(), v.span().begin());
        adamw_update(p.span(), g.span(), m.span(), v.span(), coefficients(o, 3), level);
        EXPECT_TRUE(same_bits(p.span(), expected.parameter)) << to_string(level) << ", " << n;
        EXPECT_TRUE(same_bits(g.span(), before.gradient)) << to_string(level) << ", " << n;
        EXPECT_TRUE(same_bits(m.span(), expected.m)) << to_string(level) << ", " << n;
        EXPECT_TRUE(same_bits(v.span(), expected.v)) << to_string(level) << ", " << n;
        EXPECT_TRUE(p.intact() && g.intact() && m.intact() && v.intact()) << to_string(level) << ", " << n;
      }
    }
  }
}

TEST(adamw_kernel, does_not_depend_on_where_the_arrays_are_cut) {
  constexpr std::size_t n = 1000;
  const state before = ordinary(n, 21);
  const adamw_coefficients c = coefficients({.weight_decay = 0.1F}, 5);
  for (const simd_level level : levels()) {
    state whole = before;
    whole.update(c, level);
    state parts = before;
    for (std::size_t first = 0, length = 1; first < n; first += length, ++length) {
      const std::size_t count = std::min(length, n - first);
      const auto part = [&](std::vector<float>& x) { return std::span(x).subspan(first, count); };
      adamw_update(part(parts.parameter), part(parts.gradient), part(parts.m), part(parts.v), c, level);
    }
    EXPECT_TRUE(same_bits(whole.parameter, parts.parameter)) << to_string(level);
    EXPECT_TRUE(same_bits(whole.m, parts.m)) << to_string(level);
    EXPECT_TRUE(same_bits(whole.v, parts.v)) << to_string(level);
  }
}

// The first step with no eps: m / (1 - b1) is g and v / (1 - b2) its square, so that only its sign is left.
TEST(adamw_kernel, first_step_moves_by_the_learning_rate) {
  for (const simd_level level : levels()) {
    state s(9);
    for (std::size_t i = 0; i < 9; ++i) {
      s.parameter[i] = 1.0F;
      s.gradient[i] = i % 2 == 0 ? 3.0F : -5.0F;
    }
    s.update(coefficients({.lr = 0.25F, .eps = 0.0F}, 1), level);
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_FLOAT_EQ(s.parameter[i], i % 2 == 0 ? 0.75F : 1.25F) << to_string(level);
    }
  }
}

TEST(adamw_kernel, zero_gradients_without_decay_leave_fresh_weights_alone) {
  for (const simd_level level : levels()) {
    state s = ordinary(77, 31);
    std::fill(s.gradient.begin(), s.gradient.end(), 0.0F);
    std::fill(s.m.begin(), s.m.end(), 0.0F);
    std::fill(s.v.begin(), s.v.end(), 0.0F);
    const state before = s;
    s.update(coefficients({}, 1), level);
    EXPECT_TRUE(same_bits(s.parameter, before.parameter)) << to_string(level);
    EXPECT_TRUE(same_bits(s.m, before.m) && same_bits(s.v, before.v)) << to_string(level);
  }
}

// Decoupled: the decay is lr * weight_decay * parameter, whatever the gradient's history, and is not in m or v.
TEST(adamw_kernel, decay_shrinks_the_parameter_alone) {
  state s(3);
  s.parameter = {1.0F, -2.0F, 0.0F};
  s.update(coefficients({.lr = 0.5F, .weight_decay = 0.5F}, 1), best_simd_level());
  EXPECT_EQ(s.parameter, (std::vector<float>{0.75F, -1.5F, 0.0F}));
  EXPECT_EQ(s.m, std::vector<float>(3, 0.0F));
  EXPECT_EQ(s.v, std::vector<float>(3, 0.0F));
}

TEST(adamw_kernel, clipping_is_one_fp32_multiply_of_the_gradient) {
  state clipped = ordinary(1000, 41);
  state scaled = clipped;
  const float clip = 0.1F;
  for (float& g : scaled.gradient) {
    g *= clip;
  }
  clipped.update(coefficients({.clip = clip}, 4), best_simd_level());
  scaled.update(coefficients({}, 4), best_simd_level());
  EXPECT_TRUE(same_bits(clipped.parameter, scaled.parameter));
  EXPECT_TRUE(same_bits(clipped.m, scaled.m));
  EXPECT_TRUE(same_bits(clipped.v, scaled.v));
}

TEST(adamw_kernel, refuses_unequal_lengths_and_step_zero) {
  state s(4);
  EXPECT_THROW(adamw_update(s.parameter, std::span(s.gradient).first(3), s.m, s.v, {}), usage_error);
  EXPECT_THROW(adamw_update(s.parameter, s.gradient, std::span(s.m).first(3), s.v, {}), usage_error);
  EXPECT_THROW(adamw_update(s.parameter, s.gradient, s.m, std::span(s.v).first(3), {}), usage_error);
  EXPECT_THROW(static_cast<void>(make_adamw_coefficients({}, 0)), usage_error);
}

}  // namespace
}  // namespace forebay
