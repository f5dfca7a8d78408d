// The trainer where there is a GPU.
#include <gtest/gtest.h>

#include "trainer_checks.hpp"

namespace train_gpt {
namespace {

class train_gpt_on_gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (forebay::cuda_device_count() == 0) {
      GTEST_SKIP() << "there is no CUDA device here";
    }
  }
  const model_shape shape_{.layers = 3, .width = 192, .heads = 3, .context = 70, .batch = 3, .micro_batches = 2};
};

TEST_F(train_gpt_on_gpu, gradients_are_the_cpus_in_fp32) {
  checks::expect_gradients_of_the_cpu(shape_, matmul_precision::fp32);
}
TEST_F(train_gpt_on_gpu, gradients_are_the_cpus_in_tf32) {
  checks::expect_gradients_of_the_cpu(shape_, matmul_precision::tf32);
}
TEST_F(train_gpt_on_gpu, gradients_are_the_cpus_in_bf16) {
  checks::expect_gradients_of_the_cpu(shape_, matmul_precision::bf16);
}
TEST_F(train_gpt_on_gpu, the_engine_gives_the_bits_of_the_resident_run) {
  checks::expect_bits_of_the_resident_run(
      {.layers = 2, .width = 64, .heads = 4, .context = 32, .batch = 1, .micro_batches = 2}, 3);
}

}  // namespace
}  // namespace train_gpt
