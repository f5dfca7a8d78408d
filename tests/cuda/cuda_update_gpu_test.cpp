// The optimizer's kernels where there is a GPU.
#include <gtest/gtest.h>

#include <forebay/cuda.hpp>
#include <forebay/device/emulated_device.hpp>

#include "update_checks.hpp"

namespace forebay {
namespace {

class update_on_gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) {
      GTEST_SKIP() << "there is no CUDA device here";
    }
  }
};

TEST_F(update_on_gpu, kernels_give_the_bits_of_the_cpu) {
  const auto device = cuda_device(0, 4_MiB);
  update_checks::expect_bits_of_the_cpu(*device);
}

TEST_F(update_on_gpu, trains_as_the_host_does) {
  adamw_options options = update_checks::small_subgroups();
  options.where = adamw_options::location::host;
  const auto want = update_checks::train(emulated_device({.capacity = 4_MiB}), options);
  const auto kernels = cuda_update();
  options.kernels = kernels.get();
  options.where = adamw_options::location::device;
  EXPECT_EQ(update_checks::train(cuda_device(0, 4_MiB), options), want);
}

}  // namespace
}  // namespace forebay
