#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <forebay/base/host_device.hpp>

#include "math.hpp"

// The bodies of the GPU's kernels, for an element or, with a team, for a row (see forebay/device/kernel_team.hpp). Each
// does what the CPU's loop of that name does, in the same order: the bits are the same, but for the logarithm.
namespace train_gpt::kernels {

/// to[i] = bias[column], plus the residual where there is one.
template <typename T>
struct fill_row {
  T* to;
  const T* bias;
  const T* residual;  ///< or null
  std::size_t width;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const {
    const T b = bias[i % width];
    to[i] = residual == nullptr ? b : residual[i] + b;
  }
};

/// For each column.
template <typename T>
struct add_rows {
  const T* dy;
  std::size_t rows;
  std::size_t width;
  T* dbias;
  FOREBAY_HOST_DEVICE void operator()(std::size_t column) const {
    T sum = dbias[column];
    for (std::size_t row = 0; row < rows; ++row) {
      sum += dy[row * width + column];
    }
    dbias[column] = sum;
  }
};

/// Mean and reciprocal standard deviation of a row, as `row_statistics` has them.
template <typename T>
struct row_moments {
  T mean;
  T reciprocal_deviation;

  template <typename Team>
  FOREBAY_HOST_DEVICE row_moments(const Team& team, const T* row, std::size_t width) {
    const auto n = static_cast<T>(width);
    const T center = team.template sum<T>(width, [&](std::size_t i) { return row[i]; }) / n;
    const T variance =
        team.template sum<T>(width, [&](std::size_t i) { return (row[i] - center) * (row[i] - center); }) / n;
    mean = center;
    reciprocal_deviation = T{1} / std::sqrt(variance + static_cast<T>(1e-5));
  }
};

template <typename T>
struct norm_row {
  const T* x;
  const T* gain;
  const T* bias;
  T* y;
  std::size_t width;
  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t row) const {
    const T* const in = x + row * width;
    T* const out = y + row * width;
    const row_moments<T> m(team, in, width);
    team.each(width, [&](std::size_t i) { out[i] = (in[i] - m.mean) * m.reciprocal_deviation * gain[i] + bias[i]; });
  }
};

/// Leaves each row's mean and reciprocal deviation for `norm_parameters`.
template <typename T>
struct norm_statistics {
  const T* x;
  T* statistics;  ///< [rows, 2]
  std::size_t width;
  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t row) const {
    const row_moments<T> m(team, x + row * width, width);
    team.once([&] {
      statistics[2 * row] = m.mean;
      statistics[2 * row + 1] = m.reciprocal_deviation;
    });
  }
};

/// For each column: the gradients of gain and bias.
template <typename T>
struct norm_parameters {
  const T* x;
  const T* dy;
  const T* statistics;
  std::size_t rows;
  std::size_t width;
  T* dgain;
  T* dbias;
  FOREBAY_HOST_DEVICE void operator()(std::size_t column) const {
    T of_gain = dgain[column];
    T of_bias = dbias[column];
    for (std::size_t row = 0; row < rows; ++row) {
      const T out = dy[row * width + column];
      of_gain += out * ((x[row * width + column] - statistics[2 * row]) * statistics[2 * row + 1]);
      of_bias += out;
    }
    dgain[column] = of_gain;
    dbias[column] = of_bias;
  }
};

/// For each row, after `norm_parameters`: adds to dx, overwrites dy.
template <typename T>
struct norm_input {
  const T* x;
  const T* gain;
  const T* statistics;
  T* dy;
  T* dx;
  std::size_t width;
  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t row) const {
    const T* const in = x + row * width;
    T* const grad = dy + row * width;
    T* const to = dx + row * width;
    const T center = statistics[2 * row];
    const T reciprocal = statistics[2 * row + 1];
    team.each(width, [&](std::size_t i) { grad[i] *= gain[i]; });
    const auto n = static_cast<T>(width);
    const T mean = team.template sum<T>(width, [&](std::size_t i) { return grad[i]; }) / n;
    const T along =
        team.template sum<T>(width, [&](std::size_t i) { return grad[i] * ((in[i] - center) * reciprocal); }) / n;
    team.each(width,
              [&](std::size_t i) { to[i] += (grad[i] - mean - (in[i] - center) * reciprocal * along) * reciprocal; });
  }
};

template <typename T>
struct gelu_of {
  const T* from;
  T* to;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const { to[i] = gelu(from[i]); }
};

template <typename T>
struct gelu_gradient {
  const T* from;
  T* gradient;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const { gradient[i] *= gelu_derivative(from[i]); }
};

// Rows of [heads, context, context]: row r sees its first r % context + 1 columns.

template <typename T>
struct softmax_row {
  T* weights;
  T* log_sums;
  std::size_t context;
  T scale;
  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t row) const {
    const std::size_t visible = row % context + 1;
    T* const w = weights + row * context;
    const std::size_t all = context;
    const T factor = scale;
    const T largest =
        team.largest(visible, -std::numeric_limits<T>::infinity(), [&](std::size_t j) { return w[j] * factor; });
    team.each(visible, [&](std::size_t j) { w[j] = exponential(w[j] * factor - largest); });
    const T sum = team.template sum<T>(visible, [&](std::size_t j) { return w[j]; });
    const T reciprocal = T{1} / sum;
    team.each(all, [&](std::size_t j) { w[j] = j < visible ? w[j] * reciprocal : T{0}; });
    team.once([&] { log_sums[row] = largest + std::log(sum); });
  }
};

template <typename T>
struct softmax_again_element {
  T* weights;
  const T* log_sums;
  std::size_t context;
  T scale;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t row = i / context;
    weights[i] = i % context <= row % context ? exponential(weights[i] * scale - log_sums[row]) : T{0};
  }
};

template <typename T>
struct softmax_gradient {
  const T* weights;
  T* d_weights;
  std::size_t context;
  T scale;
  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t row) const {
    const std::size_t visible = row % context + 1;
    const T* const w = weights + row * context;
    T* const dw = d_weights + row * context;
    const T factor = scale;
    const T along = team.template sum<T>(visible, [&](std::size_t j) { return w[j] * dw[j]; });
    team.each(context, [&](std::size_t j) { dw[j] = j < visible ? w[j] * (dw[j] - along) * factor : T{0}; });
  }
};

/// Where a token's input byte lies; its target is the next one.
[[nodiscard]] FOREBAY_HOST_DEVICE inline std::size_t byte_of(std::size_t token, std::size_t context) {
  return token / context * (context + 1) + token % context;
}

template <typename T>
struct embed_element {
  const std::uint8_t* tokens;
  const T* token_embedding;
  const T* position_embedding;
  std::size_t context;
  std::size_t width;
  T* x;
  FOREBAY_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / width;
    const std::size_t column = i % width;
    x[i] = token_embedding[tokens[byte_of(token, context)] * width + column] +
           position_embedding[token % context * width + column];
  }
};

/// For each column, tokens in order: they share rows.
template <typename T>
struct embed_gradient {
  const std::uint8_t* tokens;
  const T* gradient;
  std::size_t count;  ///< of tokens
  std::size_t context;
  std::size_t width;
  T* d_token_embedding;
  T* d_position_embedding;
  FOREBAY_HOST_DEVICE void operator()(std::size_t column) const {
    for (std::size_t token = 0; token < count; ++token) {
      const T from = gradient[token * width + column];
      d_token_embedding[tokens[byte_of(token, context)] * width + column] += from;
      d_position_embedding[token % context * width + column] += from;
    }
  }
};

/// For each token.
template <typename T>
struct token_loss {
  const std::uint8_t* tokens;
  T* logits;
  T* losses;
  std::size_t context;
  std::size_t classes;
  T scale;
  template <typename Team>
  FOREBAY_HOST_DEVICE void operator()(const Team& team, std::size_t token) const {
    T* const row = logits + token * classes;
    const std::size_t target = tokens[byte_of(token, context) + 1];
    const T largest = team.largest(classes, -std::numeric_limits<T>::infinity(), [&](std::size_t i) { return row[i]; });
    const T of_target = row[target] - largest;
    team.each(0, [](std::size_t) {});  // all lanes have read the target before one of them overwrites it
    team.each(classes, [&](std::size_t i) { row[i] = exponential(row[i] - largest); });
    const T sum = team.template sum<T>(classes, [&](std::size_t i) { return row[i]; });
    const T reciprocal = scale / sum;
    const T subtrahend = scale;
    team.each(classes, [&](std::size_t i) {
      const T share = row[i] * reciprocal;
      row[i] = i == target ? share - subtrahend : share;
    });
    team.once([&] { losses[token] = std::log(sum) - of_target; });
  }
};

/// One item: adds the sum, in order and in double.
template <typename T>
struct add_all_losses {
  const T* losses;
  std::size_t count;
  double scale;
  T* loss;
  FOREBAY_HOST_DEVICE void operator()(std::size_t) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += static_cast<double>(losses[i]);
    }
    *loss += static_cast<T>(sum * scale);
  }
};

}  // namespace train_gpt::kernels
