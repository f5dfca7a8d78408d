#pragma once

#include <cstddef>

#include "matmul.hpp"

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

}  // namespace train_gpt
