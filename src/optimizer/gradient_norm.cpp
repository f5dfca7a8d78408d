#include <algorithm>
#include <vector>

#include <forebay/base/contract.hpp>
#include <forebay/optimizer/gradient_norm.hpp>
#include <optimizer/kernels.hpp>

namespace forebay {

namespace detail {

double add_lanes(double (&lanes)[norm_lanes]) noexcept {
  for (std::size_t half = norm_lanes / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      lanes[j] += lanes[j + half];
    }
  }
  return lanes[0];
}

double leaf_scalar(const float* x, std::size_t n) noexcept {
  double lanes[norm_lanes] = {};
  std::size_t i = 0;
  for (; i + norm_lanes <= n; i += norm_lanes) {
    for (std::size_t j = 0; j < norm_lanes; ++j) {
      const double element = x[i + j];
      lanes[j] += element * element;
    }
  }
  for (std::size_t j = 0; i + j < n; ++j) {
    const double element = x[i + j];
    lanes[j] += element * element;
  }
  return add_lanes(lanes);
}

}  // namespace detail

double leaf_sum_of_squares(std::span<const float> leaf, simd_level level) {
  FOREBAY_EXPECTS(leaf.size() <= norm_leaf_elements, "a leaf has at most 4,096 elements");
  detail::require(level);
  switch (level) {
#if defined(__x86_64__)
    case simd_level::avx512:
      return detail::leaf_avx512(leaf.data(), leaf.size());
    case simd_level::avx2:
      return detail::leaf_avx2(leaf.data(), leaf.size());
#endif
    default:
      return detail::leaf_scalar(leaf.data(), leaf.size());
  }
}

double tree_sum(std::span<double> values) noexcept {
  std::size_t n = values.size();
  if (n == 0) {
    return 0.0;
  }
  while (n > 1) {
    const std::size_t pairs = n / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
      values[i] = values[2 * i] + values[2 * i + 1];
    }
    if (n % 2 != 0) {
      values[pairs] = values[n - 1];
    }
    n = pairs + n % 2;
  }
  return values[0];
}

double sum_of_squares(std::span<const float> tensor, simd_level level) {
  std::vector<double> leaves(norm_leaves(tensor.size()));
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const std::size_t from = k * norm_leaf_elements;
    const std::size_t count = std::min(norm_leaf_elements, tensor.size() - from);
    leaves[k] = leaf_sum_of_squares(tensor.subspan(from, count), level);
  }
  return tree_sum(leaves);
}

float clip_scale(double norm, float clip_norm) noexcept {
  const double limit = clip_norm;
  return clip_norm > 0.0F && norm > limit ? static_cast<float>(limit / norm) : 1.0F;
}

}  // namespace forebay
