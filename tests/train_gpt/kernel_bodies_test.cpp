// The bodies of the GPU's kernels, run on the host, beside the CPU's operations.
#include "train_gpt/kernel_bodies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include <forebay/device/kernel_team.hpp>

#include "train_gpt/operations.hpp"
#include "train_gpt/random.hpp"

namespace train_gpt {
namespace {

using floats = std::vector<float>;

floats normal(std::size_t n, std::uint64_t stream) {
  floats values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(random_normal(stream, i));
  }
  return values;
}

template <typename Body>
void elements(std::size_t n, const Body& body) {
  for (std::size_t i = 0; i < n; ++i) {
    body(i);
  }
}

template <typename Body>
void teams(std::size_t n, const Body& body) {
  for (std::size_t i = 0; i < n; ++i) {
    body(forebay::host_team{}, i);
  }
}

/// The logarithm alone differs between the C library and a GPU's; on the host both sides have the same one.
class kernel_bodies : public ::testing::TestWithParam<batch_shape> {
 protected:
  const batch_shape s = GetParam();
  const std::size_t rows = s.tokens();
  const std::size_t all = rows * s.width;
  std::unique_ptr<operations<float>> cpu = cpu_operations<float>();
  std::vector<std::uint8_t> text = [this] {
    std::vector<std::uint8_t> bytes(s.sequences * (s.context + 1));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(random_below(5, i, 7) * 40);
    }
    return bytes;
  }();
};

TEST_P(kernel_bodies, rows_are_filled_and_added_up) {
  const floats bias = normal(s.width, 1);
  const floats residual = normal(all, 2);
  floats want(all);
  floats got(all);
  cpu->fill_rows(want, bias);
  elements(all, kernels::fill_row<float>{got.data(), bias.data(), nullptr, s.width});
  EXPECT_EQ(got, want);
  cpu->fill_rows(want, bias, residual);
  elements(all, kernels::fill_row<float>{got.data(), bias.data(), residual.data(), s.width});
  EXPECT_EQ(got, want);
  floats sums = normal(s.width, 3);
  floats sums2 = sums;
  cpu->bias_gradient(residual, sums);
  elements(s.width, kernels::add_rows<float>{residual.data(), rows, s.width, sums2.data()});
  EXPECT_EQ(sums2, sums);
}

TEST_P(kernel_bodies, layer_norm) {
  const floats x = normal(all, 1);
  const floats gain = normal(s.width, 2);
  const floats bias = normal(s.width, 3);
  floats want(all);
  floats got(all);
  cpu->layer_norm_forward(x, gain, bias, want);
  teams(rows, kernels::norm_row<float>{x.data(), gain.data(), bias.data(), got.data(), s.width});
  EXPECT_EQ(got, want);
  floats dy = normal(all, 4);
  floats dy2 = dy;
  floats dx = normal(all, 5);
  floats dx2 = dx;
  floats dgain = normal(s.width, 6);
  floats dgain2 = dgain;
  floats dbias = normal(s.width, 7);
  floats dbias2 = dbias;
  floats statistics(2 * rows);
  cpu->layer_norm_backward(x, gain, dy, dx, dgain, dbias, {});
  teams(rows, kernels::norm_statistics<float>{x.data(), statistics.data(), s.width});
  elements(s.width, kernels::norm_parameters<float>{x.data(), dy2.data(), statistics.data(), rows, s.width,
                                                    dgain2.data(), dbias2.data()});
  teams(rows, kernels::norm_input<float>{x.data(), gain.data(), statistics.data(), dy2.data(), dx2.data(), s.width});
  EXPECT_EQ(dx2, dx);
  EXPECT_EQ(dgain2, dgain);
  EXPECT_EQ(dbias2, dbias);
}

TEST_P(kernel_bodies, gelu) {
  const floats x = normal(all, 1);
  floats want(all);
  floats got(all);
  cpu->gelu(x, want);
  elements(all, kernels::gelu_of<float>{x.data(), got.data()});
  EXPECT_EQ(got, want);
  cpu->gelu_backward(x, want);
  elements(all, kernels::gelu_gradient<float>{x.data(), got.data()});
  EXPECT_EQ(got, want);
}

TEST_P(kernel_bodies, softmax_and_back) {
  const std::size_t score_rows = s.heads * s.context;
  const floats scores = normal(score_rows * s.context, 1);
  const float scale = 1.0F / std::sqrt(static_cast<float>(s.head_width()));
  floats want = scores;
  floats got = scores;
  floats logs(score_rows);
  floats logs2(score_rows);
  cpu->softmax(s, want, logs);
  teams(score_rows, kernels::softmax_row<float>{got.data(), logs2.data(), s.context, scale});
  EXPECT_EQ(got, want);
  EXPECT_EQ(logs2, logs);
  floats again = scores;
  floats again2 = scores;
  cpu->softmax_again(s, again, logs);
  elements(scores.size(), kernels::softmax_again_element<float>{again2.data(), logs.data(), s.context, scale});
  EXPECT_EQ(again2, again);
  floats d = normal(scores.size(), 2);
  floats d2 = d;
  cpu->softmax_backward(s, want, d);
  teams(score_rows, kernels::softmax_gradient<float>{want.data(), d2.data(), s.context, scale});
  EXPECT_EQ(d2, d);
}

TEST_P(kernel_bodies, embedding_and_back) {
  const floats of_token = normal(vocabulary * s.width, 1);
  const floats of_position = normal(s.context * s.width, 2);
  floats want(all);
  floats got(all);
  cpu->embed(s, text, of_token, of_position, want);
  elements(all, kernels::embed_element<float>{text.data(), of_token.data(), of_position.data(), s.context, s.width,
                                              got.data()});
  EXPECT_EQ(got, want);
  floats dt = of_token;
  floats dt2 = of_token;
  floats dp = of_position;
  floats dp2 = of_position;
  cpu->embed_backward(s, text, want, dt, dp);
  elements(s.width,
           kernels::embed_gradient<float>{text.data(), want.data(), rows, s.context, s.width, dt2.data(), dp2.data()});
  EXPECT_EQ(dt2, dt);
  EXPECT_EQ(dp2, dp);
}

TEST_P(kernel_bodies, cross_entropy) {
  floats logits = normal(rows * vocabulary, 1);
  floats logits2 = logits;
  floats losses(rows);
  floats losses2(rows);
  cpu->cross_entropy(s, text, logits, losses, 0.25F);
  teams(rows, kernels::token_loss<float>{text.data(), logits2.data(), losses2.data(), s.context, vocabulary, 0.25F});
  EXPECT_EQ(logits2, logits);
  EXPECT_EQ(losses2, losses);
  floats loss{1.5F};
  floats loss2{1.5F};
  cpu->add_losses(losses, 0.3, loss);
  elements(1, kernels::add_all_losses<float>{losses.data(), rows, 0.3, loss2.data()});
  EXPECT_EQ(loss2, loss);
}

INSTANTIATE_TEST_SUITE_P(shapes, kernel_bodies,
                         ::testing::Values(batch_shape{2, 19, 40, 2}, batch_shape{3, 5, 7, 1},
                                           batch_shape{1, 32, 64, 4}));

}  // namespace
}  // namespace train_gpt
