#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "matmul.hpp"
#include "parallel.hpp"

namespace train_gpt {

/// y[tokens, out] = x[tokens, in] w[in, out]: the products of its forward and backward pass, all row-major.
struct linear {
  std::size_t tokens;
  std::size_t in;
  std::size_t out;

  /// y += x w: y holds the bias (and the residual) already.
  [[nodiscard]] product forward() const { return {dense(tokens, in), dense(in, out), dense(tokens, out), true}; }
  /// dx = dy w^T.
  [[nodiscard]] product input_gradient() const {
    return {dense(tokens, out), dense(in, out).transposed(), dense(tokens, in)};
  }
  /// dw = x^T dy, or dw += x^T dy.
  [[nodiscard]] product weight_gradient(bool accumulate) const {
    return {dense(tokens, in).transposed(), dense(tokens, out), dense(in, out), accumulate};
  }
};

/// Every row of `to` becomes the bias.
template <typename T>
void fill_rows(std::span<T> to, std::span<const T> bias) {
  const std::size_t width = bias.size();
  parallel_for(to.size() / width, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      std::copy(bias.begin(), bias.end(), to.data() + row * width);
    }
  });
}

/// Every row of `to` becomes that row of `residual` plus the bias.
template <typename T>
void fill_rows(std::span<T> to, std::span<const T> bias, std::span<const T> residual) {
  const std::size_t width = bias.size();
  parallel_for(to.size() / width, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t i = 0; i < width; ++i) {
        to[row * width + i] = residual[row * width + i] + bias[i];
      }
    }
  });
}

/// Adds the rows of `dy`, in order, to the bias's gradient.
template <typename T>
void bias_gradient(std::span<const T> dy, std::span<T> dbias) {
  const std::size_t width = dbias.size();
  parallel_for(width, dy.size() / width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < dy.size() / width; ++row) {
      for (std::size_t i = begin; i < end; ++i) {
        dbias[i] += dy[row * width + i];
      }
    }
  });
}

/// The first micro-batch finds undefined gradients, the later ones add to them. Products know this by themselves
/// (`weight_gradient`); what is summed by loops starts from zero here.
template <typename T>
void start_gradients(bool accumulate, std::initializer_list<std::span<T>> gradients) {
  if (!accumulate) {
    for (const std::span<T>& gradient : gradients) {
      std::fill(gradient.begin(), gradient.end(), T{0});
    }
  }
}

}  // namespace train_gpt
