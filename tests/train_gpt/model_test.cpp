#include "train_gpt/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <forebay/base/error.hpp>
#include <map>
#include <set>
#include <stdexcept>

#include "train_gpt/embedding.hpp"
#include "train_gpt/initialise.hpp"
#include "train_gpt/plain_memory.hpp"
#include "train_gpt/random.hpp"

namespace train_gpt {
namespace {

const model_shape small{.layers = 2, .width = 16, .heads = 4, .context = 8, .batch = 3, .micro_batches = 2};

template <typename T>
double loss_of(const model<T>& m, plain_memory<T>& memory) {
  for (const model_step& step : m.steps()) {
    memory.run(step);
  }
  return static_cast<double>(memory.template of<T>(m.tensors().loss)[0]);
}

template <typename T>
void set_text(const model<T>& m, plain_memory<T>& memory) {
  for (const tensor_index t : m.tensors().tokens) {
    const std::span<std::uint8_t> bytes = memory.template of<std::uint8_t>(t);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(random_bits(t, i));
    }
  }
}

TEST(model, is_the_entropy_of_a_guess_when_all_logits_are_equal) {
  model<double> m(small);
  plain_memory<double> memory(m);  // zeros: every logit is zero
  set_text(m, memory);
  EXPECT_NEAR(loss_of(m, memory), std::log(256.0), 1e-12);
}

TEST(model, loss_follows_a_known_distribution) {
  // With every weight zero but the final bias b and one row of the embedding, e_7 = k b / |b|^2, the logit of byte 7
  // is k and all others are 0, at every position.
  model<double> m(small);
  plain_memory<double> memory(m);
  const double k = 3.0;
  const std::size_t width = small.width;
  std::fill_n(memory.of<double>(m.tensors().final_bias).data(), width, 1.0);
  std::fill_n(memory.of<double>(m.tensors().token_embedding).data() + 7 * width, width, k / static_cast<double>(width));
  const double log_sum = std::log(std::exp(k) + 255.0);
  for (const tensor_index t : m.tensors().tokens) {
    std::fill_n(memory.of<std::uint8_t>(t).data(), small.token_bytes(), std::uint8_t{7});
  }
  EXPECT_NEAR(loss_of(m, memory), log_sum - k, 1e-12);
  for (const tensor_index t : m.tensors().tokens) {
    std::fill_n(memory.of<std::uint8_t>(t).data(), small.token_bytes(), std::uint8_t{8});
  }
  EXPECT_NEAR(loss_of(m, memory), log_sum, 1e-12);
}

TEST(model, sees_no_later_byte) {
  const model_shape shape{.layers = 2, .width = 16, .heads = 2, .context = 8, .batch = 1};
  model<double> m(shape);
  plain_memory<double> memory(m);
  for (tensor_index p = 0; p < m.tensors().parameters().size(); ++p) {
    const std::span<double> values = memory.of<double>(p);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = m.tensors().parameters()[p].initial.mean + 0.3 * random_normal(p, i);
    }
  }
  set_text(m, memory);
  // Only forward steps, so that what the last layer says is still there.
  const auto outputs = [&] {
    for (const model_step& step : m.steps()) {
      if (step.phase == "forward") {
        memory.run(step);
      }
    }
    const std::span<double> out = memory.of<double>(m.tensors().final_in);
    return std::vector<double>(out.begin(), out.end());
  };
  const std::vector<double> before = outputs();
  memory.of<std::uint8_t>(m.tensors().tokens[0])[5] ^= 0x55U;
  const std::vector<double> after = outputs();
  const std::size_t boundary = 5 * shape.width;
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + boundary, after.begin()));
  for (std::size_t position = 5; position < shape.context; ++position) {
    EXPECT_FALSE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(position * shape.width),
                            before.begin() + static_cast<std::ptrdiff_t>((position + 1) * shape.width),
                            after.begin() + static_cast<std::ptrdiff_t>(position * shape.width)))
        << "position " << position << " ignores the byte";
  }
}

TEST(model, in_float_is_close_to_double) {
  model<double> exact(small);
  model<float> rounded(small);
  plain_memory<double> in_double(exact);
  plain_memory<float> in_float(rounded);
  initialise_parameters(rounded.tensors(), 3, [&](tensor_index t, std::span<const float> values, std::size_t offset) {
    std::copy(values.begin(), values.end(), in_float.of<float>(t).subspan(offset).begin());
    std::copy(values.begin(), values.end(), in_double.of<double>(t).subspan(offset).begin());
  });
  set_text(exact, in_double);
  set_text(rounded, in_float);
  EXPECT_NEAR(loss_of(exact, in_double), loss_of(rounded, in_float), 1e-5);
  for (tensor_index p = 0; p < exact.tensors().parameters().size(); ++p) {
    const std::span<double> want = in_double.of<double>(exact.tensors().gradient(p));
    const std::span<float> got = in_float.of<float>(exact.tensors().gradient(p));
    double largest = 0.0;
    for (const double w : want) {
      largest = std::max(largest, std::abs(w));
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(got[i]), want[i], 2e-5 * largest) << exact.tensors().specs()[p].name;
    }
  }
}

TEST(model, gives_the_same_bits_every_time) {
  const auto gradients = [] {
    model<float> m(small);
    plain_memory<float> memory(m);
    initialise_parameters(m.tensors(), 3, [&](tensor_index t, std::span<const float> values, std::size_t offset) {
      std::copy(values.begin(), values.end(), memory.of<float>(t).subspan(offset).begin());
    });
    set_text(m, memory);
    loss_of(m, memory);
    std::vector<float> all;
    for (tensor_index p = 0; p < m.tensors().parameters().size(); ++p) {
      const std::span<float> g = memory.of<float>(m.tensors().gradient(p));
      all.insert(all.end(), g.begin(), g.end());
    }
    return all;
  };
  EXPECT_EQ(gradients(), gradients());
}

/// What the engine relies on: contents exist before they are read, and every activation ends within the iteration.
TEST(model, declares_what_it_uses_in_a_possible_order) {
  const model<float> m(small);
  const tensor_table& t = m.tensors();
  std::set<tensor_index> alive;
  for (tensor_index p = 0; p < t.parameters().size(); ++p) {
    alive.insert(p);
  }
  alive.insert(t.tokens.begin(), t.tokens.end());
  for (const model_step& step : m.steps()) {
    std::set<tensor_index> seen;
    for (const model_access& access : step.accesses) {
      EXPECT_TRUE(seen.insert(access.tensor).second) << step.name << " names a tensor twice";
      if (forebay::needs_contents(access.how)) {
        EXPECT_TRUE(alive.count(access.tensor) == 1) << step.name << " reads " << t.specs()[access.tensor].name;
      } else {
        EXPECT_TRUE(alive.insert(access.tensor).second) << step.name << " creates what is there";
      }
      if (forebay::has(access.how, forebay::uses::free)) {
        alive.erase(access.tensor);
      }
    }
  }
  for (const tensor_index left : alive) {
    EXPECT_NE(t.specs()[left].role, forebay::role::activation) << t.specs()[left].name << " is never freed";
  }
}

/// Steps write what they declare to write, and nothing that they only read.
TEST(model, steps_do_not_change_what_they_only_read) {
  const model<float> m(small);
  plain_memory<float> memory(m);
  initialise_parameters(m.tensors(), 3, [&](tensor_index t, std::span<const float> values, std::size_t offset) {
    std::copy(values.begin(), values.end(), memory.of<float>(t).subspan(offset).begin());
  });
  set_text(m, memory);
  for (const model_step& step : m.steps()) {
    std::map<tensor_index, std::vector<std::byte>> before;
    for (tensor_index t = 0; t < m.tensors().specs().size(); ++t) {
      const std::span<std::byte> bytes = memory.of<std::byte>(t);
      before[t].assign(bytes.begin(), bytes.end());
    }
    memory.run(step);
    for (const model_access& access : step.accesses) {
      if (forebay::modifies(access.how)) {
        before.erase(access.tensor);
      }
    }
    for (const auto& [t, bytes] : before) {
      EXPECT_TRUE(std::ranges::equal(memory.of<std::byte>(t), bytes))
          << step.name << " changes " << m.tensors().specs()[t].name;
    }
  }
}

TEST(model, refuses_shapes_that_make_no_sense) {
  EXPECT_THROW(model<float>({.layers = 1, .width = 10, .heads = 3, .context = 4, .batch = 1}), forebay::usage_error);
  EXPECT_THROW(model<float>({.layers = 0, .width = 8, .heads = 2, .context = 4, .batch = 1}), forebay::usage_error);
}

TEST(scratch, refuses_more_than_was_declared) {
  std::vector<std::byte> memory(128);
  scratch s(memory);
  EXPECT_EQ(s.take<float>(3).size(), 3U);
  EXPECT_EQ(s.take<float>(16).data(), static_cast<void*>(memory.data() + 64));
  EXPECT_EQ(s.used(), 128U);
  EXPECT_THROW(static_cast<void>(s.take<std::byte>(1)), std::logic_error);
}

TEST(initialise, gives_the_declared_mean_and_deviation) {
  const tensor_table t({.layers = 1, .width = 128, .heads = 4, .context = 16, .batch = 1}, forebay::dtype::f32);
  std::map<tensor_index, std::vector<float>> values;
  initialise_parameters(t, 1, [&](tensor_index p, std::span<const float> piece, std::size_t offset) {
    ASSERT_EQ(values[p].size(), offset);
    values[p].insert(values[p].end(), piece.begin(), piece.end());
  });
  for (tensor_index p = 0; p < t.parameters().size(); ++p) {
    ASSERT_EQ(values[p].size(), t.specs()[p].elements());
    const initial_value want = t.parameters()[p].initial;
    double sum = 0.0;
    double squares = 0.0;
    for (const float v : values[p]) {
      sum += static_cast<double>(v) - want.mean;
      squares += (static_cast<double>(v) - want.mean) * (static_cast<double>(v) - want.mean);
    }
    const auto n = static_cast<double>(values[p].size());
    EXPECT_NEAR(sum / n, 0.0, 5.0 * want.deviation / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), want.deviation, 5.0 * want.deviation / std::sqrt(2.0 * n));
  }
  EXPECT_NE(values[t.token_embedding], values[t.layers[0].up_weight]);
}

}  // namespace
}  // namespace train_gpt
