#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "train_gpt/embedding.hpp"
#include "train_gpt/model.hpp"
#include "train_gpt/plain_memory.hpp"
#include "train_gpt/random.hpp"

namespace train_gpt {
namespace {

/// A small model in double, with parameters and text that leave nothing at a special value.
class small_model {
 public:
  explicit small_model(const model_shape& shape) : model_(shape), memory_(model_) {
    const tensor_table& t = model_.tensors();
    for (tensor_index p = 0; p < t.parameters().size(); ++p) {
      const bool vector = t.parameters()[p].initial.deviation == 0.0;
      const std::span<double> values = memory_.of<double>(p);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = t.parameters()[p].initial.mean + (vector ? 0.2 : 0.3) * random_normal(p + 1, i);
      }
    }
    for (std::size_t m = 0; m < t.tokens.size(); ++m) {
      const std::span<std::uint8_t> bytes = memory_.of<std::uint8_t>(t.tokens[m]);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(random_below(77 + m, i, 5) * 50);  // few of them: rows are met again
      }
    }
  }

  double loss() {
    for (const model_step& step : model_.steps()) {
      memory_.run(step);
    }
    return memory_.of<double>(model_.tensors().loss)[0];
  }

  [[nodiscard]] const tensor_table& tensors() const { return model_.tensors(); }
  std::span<double> values(tensor_index t) { return memory_.of<double>(t); }

 private:
  model<double> model_;
  plain_memory<double> memory_;
};

/// The derivative of the loss by one element, from a fourth-order central difference.
double slope(small_model& m, double& element) {
  const double h = 1e-3;
  const double at = element;
  const auto loss_at = [&](double value) {
    element = value;
    return m.loss();
  };
  const double near = loss_at(at + h) - loss_at(at - h);
  const double far = loss_at(at + 2 * h) - loss_at(at - 2 * h);
  element = at;
  return (8.0 * near - far) / (12.0 * h);
}

void expect_right_gradients(const model_shape& shape) {
  small_model m(shape);
  m.loss();
  std::vector<std::vector<double>> gradients;
  for (tensor_index p = 0; p < m.tensors().parameters().size(); ++p) {
    const std::span<double> g = m.values(m.tensors().gradient(p));
    gradients.emplace_back(g.begin(), g.end());
  }
  for (tensor_index p = 0; p < gradients.size(); ++p) {
    const std::vector<double>& g = gradients[p];
    double largest = 0.0;
    for (const double value : g) {
      largest = std::max(largest, std::abs(value));
    }
    const std::string& name = m.tensors().specs()[p].name;
    EXPECT_GT(largest, 1e-6) << name << " has no gradient: the check would say nothing";
    // Elements all over the tensor, and the one with the largest gradient.
    std::vector<std::size_t> chosen{static_cast<std::size_t>(
        std::max_element(g.begin(), g.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) -
        g.begin())};
    for (std::size_t i = 0; i < 6; ++i) {
      chosen.push_back(random_below(p, i, g.size()));
    }
    for (const std::size_t i : chosen) {
      EXPECT_NEAR(slope(m, m.values(p)[i]), g[i], 1e-7 * largest + 1e-11) << name << "[" << i << "]";
    }
  }
}

TEST(gradients, agree_with_finite_differences) {
  expect_right_gradients({.layers = 2, .width = 12, .heads = 3, .context = 6, .batch = 2});
}

TEST(gradients, agree_with_one_head_and_rows_shorter_than_a_lane) {
  expect_right_gradients({.layers = 1, .width = 7, .heads = 1, .context = 5, .batch = 3});
}

TEST(gradients, agree_where_rows_are_longer_than_the_lanes) {
  expect_right_gradients({.layers = 1, .width = 40, .heads = 2, .context = 19, .batch = 1});
}

TEST(gradients, of_micro_batches_add_up) {
  expect_right_gradients({.layers = 1, .width = 8, .heads = 2, .context = 4, .batch = 2, .micro_batches = 3});
}

}  // namespace
}  // namespace train_gpt
