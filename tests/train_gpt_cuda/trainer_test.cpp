// The trainer through the calls of the CUDA run-time and cuBLAS, on the fake ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../cuda/fake_cudart.hpp"
#include "trainer_checks.hpp"

namespace train_gpt {
namespace {

using forebay::testing::fake_cudart;

constexpr std::uint64_t memory = std::uint64_t{256} << 20U;

TEST(train_gpt_on_fake_cuda, gradients_are_the_cpus) {
  const fake_cudart cudart({.memory = memory});
  const model_shape small{.layers = 2, .width = 24, .heads = 3, .context = 9, .batch = 2, .micro_batches = 2};
  for (const matmul_precision p : {matmul_precision::fp32, matmul_precision::tf32, matmul_precision::bf16}) {
    checks::expect_gradients_of_the_cpu(small, p);
  }
}

TEST(train_gpt_on_fake_cuda, gradients_are_the_cpus_with_one_column_and_one_row) {
  const fake_cudart cudart({.memory = memory});
  checks::expect_gradients_of_the_cpu({.layers = 1, .width = 4, .heads = 4, .context = 1, .batch = 1},
                                      matmul_precision::fp32);
}

TEST(train_gpt_on_fake_cuda, the_engine_gives_the_bits_of_the_resident_run) {
  const fake_cudart cudart({.memory = memory});
  checks::expect_bits_of_the_resident_run(
      {.layers = 1, .width = 24, .heads = 3, .context = 9, .batch = 2, .micro_batches = 2}, 3);
  EXPECT_THAT(fake_cudart::leaks(), testing::IsEmpty());
}

}  // namespace
}  // namespace train_gpt
