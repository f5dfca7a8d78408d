#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "math.hpp"
#include "parallel.hpp"

namespace train_gpt {

/// Mean and reciprocal standard deviation of one token's row. Recomputed where needed: cheaper than keeping them.
template <typename T>
struct row_statistics {
  T mean;
  T reciprocal_deviation;

  explicit row_statistics(std::span<const T> row) {
    constexpr auto epsilon = static_cast<T>(1e-5);
    const auto n = static_cast<T>(row.size());
    mean = lane_sum<T>(row.size(), [&](std::size_t i) { return row[i]; }) / n;
    const T variance = lane_sum<T>(row.size(), [&](std::size_t i) { return (row[i] - mean) * (row[i] - mean); }) / n;
    reciprocal_deviation = T{1} / std::sqrt(variance + epsilon);
  }

  [[nodiscard]] T normalised(T value) const { return (value - mean) * reciprocal_deviation; }
};

/// y = normalised(x) * gain + bias for each row of `gain.size()` elements.
template <typename T>
void layer_norm_forward(std::span<const T> x, std::span<const T> gain, std::span<const T> bias, std::span<T> y) {
  const std::size_t width = gain.size();
  parallel_for(x.size() / width, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const auto in = x.subspan(row * width, width);
      const auto out = y.subspan(row * width, width);
      const row_statistics<T> statistics(in);
      for (std::size_t i = 0; i < width; ++i) {
        out[i] = statistics.normalised(in[i]) * gain[i] + bias[i];
      }
    }
  });
}

/// Adds the gradient of x to `dx`, and those of gain and bias to `dgain` and `dbias`. `dy` is overwritten.
template <typename T>
void layer_norm_backward(std::span<const T> x, std::span<const T> gain, std::span<T> dy, std::span<T> dx,
                         std::span<T> dgain, std::span<T> dbias) {
  const std::size_t width = gain.size();
  const std::size_t rows = x.size() / width;
  // Parameters first, by columns, rows in order; each part goes through all rows.
  parallel_for(width, rows, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < rows; ++row) {
      const row_statistics<T> statistics(x.subspan(row * width, width));
      const T* in = x.data() + row * width;
      const T* out = dy.data() + row * width;
      for (std::size_t i = begin; i < end; ++i) {
        dgain[i] += out[i] * statistics.normalised(in[i]);
        dbias[i] += out[i];
      }
    }
  });
  parallel_for(rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const auto in = x.subspan(row * width, width);
      const auto grad = dy.subspan(row * width, width);
      const auto to = dx.subspan(row * width, width);
      const row_statistics<T> s(in);
      for (std::size_t i = 0; i < width; ++i) {
        grad[i] *= gain[i];
      }
      const auto n = static_cast<T>(width);
      const T mean = lane_sum<T>(width, [&](std::size_t i) { return grad[i]; }) / n;
      const T along = lane_sum<T>(width, [&](std::size_t i) { return grad[i] * s.normalised(in[i]); }) / n;
      for (std::size_t i = 0; i < width; ++i) {
        to[i] += (grad[i] - mean - s.normalised(in[i]) * along) * s.reciprocal_deviation;
      }
    }
  });
}

}  // namespace train_gpt
