// The optimizer's kernels through the CUDA run-time's calls, on the fake one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/cuda.hpp>
#include <forebay/device/emulated_device.hpp>

#include "fake_cudart.hpp"
#include "update_checks.hpp"

namespace forebay {
namespace {

using testing::fake_cudart;

TEST(cuda_update, kernels_give_the_bits_of_the_cpu) {
  const fake_cudart cudart;
  const auto device = cuda_device(0, 4_MiB);
  update_checks::expect_bits_of_the_cpu(*device);
}

TEST(cuda_update, trains_as_the_host_does) {
  adamw_options options = update_checks::small_subgroups();
  options.where = adamw_options::location::host;
  const auto want = update_checks::train(emulated_device({.capacity = 4_MiB}), options);
  const fake_cudart cudart;
  const auto kernels = cuda_update();
  options.kernels = kernels.get();
  for (const auto where : {adamw_options::location::device, adamw_options::location::automatic}) {
    options.where = where;
    EXPECT_EQ(update_checks::train(cuda_device(0, 4_MiB), options), want);
  }
  options.where = adamw_options::location::device;
  options.device_share = 0.5;  // host and device take turns
  EXPECT_EQ(update_checks::train(cuda_device(0, 4_MiB), options), want);
  EXPECT_THAT(fake_cudart::leaks(), ::testing::IsEmpty());
}

TEST(cuda_update, without_kernels_a_place_on_the_device_is_refused) {
  const fake_cudart cudart;
  adamw_options options = update_checks::small_subgroups();
  options.where = adamw_options::location::device;
  EXPECT_THROW(static_cast<void>(update_checks::train(cuda_device(0, 4_MiB), options)), unsupported_error);
}

TEST(cuda_update, a_failed_launch_is_an_error) {
  const fake_cudart cudart;
  const auto device = cuda_device(0, 4_MiB);
  const auto stream = device->make_stream(stream_kind::compute);
  fake_cudart::fail_next("cudaLaunchKernel", cudaErrorInvalidDeviceFunction);
  const std::span<float> some(reinterpret_cast<float*>(device->arena().data()), 4);
  EXPECT_THAT([&] { cuda_scale(*stream, some, 1.0F, some); },
              ::testing::ThrowsMessage<device_error>(::testing::HasSubstr("cudaLaunchKernel")));
}

}  // namespace
}  // namespace forebay
