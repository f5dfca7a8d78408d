#include "train_gpt/matmul.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "train_gpt/linear.hpp"
#include "train_gpt/plain_memory.hpp"
#include "train_gpt/random.hpp"

namespace train_gpt {
namespace {

/// How many elements a batch of matrices spans.
std::size_t extent(const layout& l, std::size_t batch) {
  return (batch - 1) * l.batch_stride + (l.rows - 1) * l.row_stride + (l.columns - 1) * l.column_stride + 1;
}

std::vector<float> random_values(std::size_t n, std::uint64_t key) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(random_normal(key, i));
  }
  return values;
}

/// The operands of a product in memory that starts `shift` bytes behind a 64-byte boundary.
class operands {
 public:
  operands(const product& p, std::size_t shift)
      : a_(random_values(extent(p.a, p.batch), 1)),
        b_(random_values(extent(p.b, p.batch), 2)),
        c_(random_values(extent(p.c, p.batch), 3)),
        memory_(shift + sizeof(float) * (a_.size() + b_.size() + c_.size()) + 3 * 64) {
    std::byte* next = memory_.span().data() + shift;
    for (auto [values, to] : {std::pair(&a_, &at_[0]), std::pair(&b_, &at_[1]), std::pair(&c_, &at_[2])}) {
      *to = reinterpret_cast<float*>(next);
      std::copy(values->begin(), values->end(), *to);
      next += (values->size() * sizeof(float) + 63) / 64 * 64;
    }
  }

  std::vector<float> multiply(const product& p, matmul<float>& by) {
    aligned_bytes scratch(by.scratch_bytes({p}) + 64);
    by(p, at_[0], at_[1], at_[2], scratch.span());
    return {at_[2], at_[2] + c_.size()};
  }

  /// The same by the definition, in double, with the largest error that fp32 sums may have.
  void expect_near(const product& p, const std::vector<float>& got) const {
    for (std::size_t n = 0; n < p.batch; ++n) {
      for (std::size_t i = 0; i < p.c.rows; ++i) {
        for (std::size_t j = 0; j < p.c.columns; ++j) {
          const std::size_t to = n * p.c.batch_stride + i * p.c.row_stride + j * p.c.column_stride;
          double sum = p.accumulate ? static_cast<double>(c_[to]) : 0.0;
          double magnitude = std::abs(sum);
          for (std::size_t k = 0; k < p.a.columns; ++k) {
            const double term =
                static_cast<double>(a_[n * p.a.batch_stride + i * p.a.row_stride + k * p.a.column_stride]) *
                static_cast<double>(b_[n * p.b.batch_stride + k * p.b.row_stride + j * p.b.column_stride]);
            sum += term;
            magnitude += std::abs(term);
          }
          const double bound = static_cast<double>(p.a.columns + 1) * std::ldexp(magnitude, -24);
          ASSERT_NEAR(static_cast<double>(got[to]), sum, bound) << "batch " << n << ", element " << i << ", " << j;
        }
      }
    }
  }

  /// What lies between the matrix's elements must not change.
  void expect_gaps_untouched(const product& p, const std::vector<float>& got) const {
    std::vector<bool> ours(c_.size(), false);
    for (std::size_t n = 0; n < p.batch; ++n) {
      for (std::size_t i = 0; i < p.c.rows; ++i) {
        for (std::size_t j = 0; j < p.c.columns; ++j) {
          ours[n * p.c.batch_stride + i * p.c.row_stride + j * p.c.column_stride] = true;
        }
      }
    }
    for (std::size_t i = 0; i < c_.size(); ++i) {
      ASSERT_TRUE(ours[i] || got[i] == c_[i]) << "element " << i << " is not the product's";
    }
  }

 private:
  std::vector<float> a_, b_, c_;
  aligned_bytes memory_;
  float* at_[3] = {};
};

/// Every kind of product that the model does: dense, transposed, accumulating, and batched over column ranges.
std::vector<product> model_products() {
  const linear layer{37, 24, 65};
  const linear large{64, 128, 192};
  const layout heads{13, 8, 3 * 24, 1, 8};  // of 3 heads inside [13, 72]
  const layout mixed{13, 8, 24, 1, 8};
  const layout weights = dense(13, 13);
  return {layer.forward(),
          layer.input_gradient(),
          layer.weight_gradient(false),
          layer.weight_gradient(true),
          large.forward(),
          large.input_gradient(),
          large.weight_gradient(true),
          {heads, heads.transposed(), weights, false, 3},
          {weights, heads, mixed, false, 3},
          {weights.transposed(), mixed, heads, false, 3},
          {dense(1, 1), dense(1, 1), dense(1, 1), true}};
}

TEST(matmul, agrees_with_the_definition_and_writes_nothing_else) {
  matmul<float> multiply;
  for (const product& p : model_products()) {
    operands o(p, 0);
    const std::vector<float> got = o.multiply(p, multiply);
    o.expect_near(p, got);
    o.expect_gaps_untouched(p, got);
  }
}

TEST(matmul, bits_do_not_depend_on_addresses) {
  matmul<float> multiply;
  for (const product& p : model_products()) {
    const std::vector<float> first = operands(p, 0).multiply(p, multiply);
    for (const std::size_t shift : {64U, 192U, 4096U, 65536U + 128U}) {
      const std::vector<float> other = operands(p, shift).multiply(p, multiply);
      ASSERT_EQ(std::memcmp(first.data(), other.data(), first.size() * sizeof(float)), 0) << "shifted by " << shift;
    }
  }
}

TEST(matmul, bits_do_not_depend_on_the_object_or_what_it_did_before) {
  const std::vector<product> products = model_products();
  matmul<float> used;
  for (const product& p : products) {
    operands(p, 0).multiply(p, used);
  }
  for (const product& p : products) {
    matmul<float> fresh;
    EXPECT_EQ(operands(p, 0).multiply(p, used), operands(p, 0).multiply(p, fresh));
  }
}

TEST(matmul, refuses_scratch_that_is_too_small) {
  matmul<float> multiply;
  const product p = linear{512, 512, 2048}.weight_gradient(true);
  const std::size_t needed = multiply.scratch_bytes({p});
  ASSERT_GT(needed, 0U) << "this product was chosen because it needs scratch";
  operands o(p, 0);
  aligned_bytes scratch(needed);
  std::vector<float> some(512 * 2048);
  EXPECT_THROW(multiply(p, some.data(), some.data(), some.data(), scratch.span().first(needed - 1)), std::logic_error);
}

}  // namespace
}  // namespace train_gpt
