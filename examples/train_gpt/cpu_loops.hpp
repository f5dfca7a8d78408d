#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "math.hpp"
#include "operations.hpp"
#include "parallel.hpp"

// The loops behind the operations on the CPU (see operations.hpp for what each does), but the norm's.
namespace train_gpt {

template <typename T>
[[nodiscard]] inline T score_scale(const batch_shape& s) {
  return T{1} / std::sqrt(static_cast<T>(s.head_width()));
}

template <typename T>
void softmax_rows(const batch_shape& s, std::span<T> weights, std::span<T> log_sums) {
  const T scale = score_scale<T>(s);
  parallel_for(s.heads * s.context, s.context, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t visible = row % s.context + 1;
      T* w = weights.data() + row * s.context;
      T largest = -std::numeric_limits<T>::infinity();
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] *= scale;
        largest = w[j] > largest ? w[j] : largest;
      }
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] = exponential(w[j] - largest);
      }
      const T sum = lane_sum<T>(visible, [&](std::size_t j) { return w[j]; });
      const T reciprocal = T{1} / sum;
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] *= reciprocal;
      }
      std::fill(w + visible, w + s.context, T{0});
      log_sums[row] = largest + std::log(sum);
    }
  });
}

template <typename T>
void softmax_rows_again(const batch_shape& s, std::span<T> weights, std::span<const T> log_sums) {
  const T scale = score_scale<T>(s);
  parallel_for(s.heads * s.context, s.context, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t visible = row % s.context + 1;
      T* w = weights.data() + row * s.context;
      const T log_sum = log_sums[row];
      for (std::size_t j = 0; j < visible; ++j) {
        w[j] = exponential(w[j] * scale - log_sum);
      }
      std::fill(w + visible, w + s.context, T{0});
    }
  });
}

template <typename T>
void softmax_rows_backward(const batch_shape& s, std::span<const T> weights, std::span<T> d_weights) {
  const T scale = score_scale<T>(s);
  parallel_for(s.heads * s.context, s.context, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t visible = row % s.context + 1;
      const T* w = weights.data() + row * s.context;
      T* dw = d_weights.data() + row * s.context;
      const T along = lane_sum<T>(visible, [&](std::size_t j) { return w[j] * dw[j]; });
      for (std::size_t j = 0; j < visible; ++j) {
        dw[j] = w[j] * (dw[j] - along) * scale;
      }
      std::fill(dw + visible, dw + s.context, T{0});
    }
  });
}

template <typename T>
void gelu_all(std::span<const T> from, std::span<T> to) {
  parallel_for(from.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      to[i] = gelu(from[i]);
    }
  });
}

template <typename T>
void gelu_backward_all(std::span<const T> from, std::span<T> gradient) {
  parallel_for(from.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      gradient[i] *= gelu_derivative(from[i]);
    }
  });
}

/// Where token t's input byte lies; its target is the next one.
[[nodiscard]] inline std::size_t input_of(const batch_shape& s, std::size_t token) {
  return token / s.context * (s.context + 1) + token % s.context;
}

template <typename T>
void cross_entropy_of(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<T> logits,
                      std::span<T> losses, T scale) {
  parallel_for(s.tokens(), vocabulary, [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = begin; token < end; ++token) {
      T* row = logits.data() + token * vocabulary;
      const std::size_t target = tokens[input_of(s, token) + 1];
      T largest = -std::numeric_limits<T>::infinity();
      for (std::size_t i = 0; i < vocabulary; ++i) {
        largest = row[i] > largest ? row[i] : largest;
      }
      const T of_target = row[target] - largest;
      for (std::size_t i = 0; i < vocabulary; ++i) {
        row[i] = exponential(row[i] - largest);
      }
      const T sum = lane_sum<T>(vocabulary, [&](std::size_t i) { return row[i]; });
      losses[token] = std::log(sum) - of_target;
      const T reciprocal = scale / sum;
      for (std::size_t i = 0; i < vocabulary; ++i) {
        row[i] *= reciprocal;
      }
      row[target] -= scale;
    }
  });
}

template <typename T>
void embed_tokens(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> token_embedding,
                  std::span<const T> position_embedding, std::span<T> x) {
  parallel_for(s.tokens(), s.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = begin; token < end; ++token) {
      const T* of_byte = token_embedding.data() + tokens[input_of(s, token)] * s.width;
      const T* of_position = position_embedding.data() + token % s.context * s.width;
      for (std::size_t i = 0; i < s.width; ++i) {
        x[token * s.width + i] = of_byte[i] + of_position[i];
      }
    }
  });
}

template <typename T>
void embed_tokens_backward(const batch_shape& s, std::span<const std::uint8_t> tokens, std::span<const T> gradient,
                           std::span<T> d_token_embedding, std::span<T> d_position_embedding) {
  // Tokens share rows, so the parts are columns.
  parallel_for(s.width, s.tokens(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t token = 0; token < s.tokens(); ++token) {
      const T* from = gradient.data() + token * s.width;
      T* of_byte = d_token_embedding.data() + tokens[input_of(s, token)] * s.width;
      T* of_position = d_position_embedding.data() + token % s.context * s.width;
      for (std::size_t i = begin; i < end; ++i) {
        of_byte[i] += from[i];
        of_position[i] += from[i];
      }
    }
  });
}

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

}  // namespace train_gpt
