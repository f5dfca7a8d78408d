// The same conformance suite on the real run-time, where there is a GPU.
#include <forebay/cuda.hpp>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../device/conformance_copies.hpp"
#include "../device/conformance_streams.hpp"

namespace forebay {
namespace {

struct gpu_traits {
  static std::unique_ptr<device> make(byte_count capacity) {
    return cuda_device_count() > 0 ? cuda_device(0, capacity) : nullptr;
  }
  static void hold(device&, stream& s, std::atomic<bool>& released) {
    const auto spin = [](void* data) {
      while (!*static_cast<std::atomic<bool>*>(data)) {
        std::this_thread::yield();
      }
    };
    ASSERT_EQ(cudaLaunchHostFunc(native_stream(s), spin, &released), cudaSuccess);
  }
  static std::string why_skipped() {
    int driver = 0;
    const cudaError_t code = cudaDriverGetVersion(&driver);
    return std::string("there is no CUDA device here (") +
           (code != cudaSuccess || driver == 0 ? "no driver" : "driver " + std::to_string(driver)) + ")";
  }
  static void done() {}
};

class device_on_gpu : public conformance::conformance_test<gpu_traits> {};

TEST_F(device_on_gpu, pageable_memory_is_copied_too) {
  const auto sent = random_bytes(3'000'001, 1);
  std::vector<std::byte> got(sent.size());
  const auto s = make();
  s->copy(at(1), sent.data(), sent.size(), copy_direction::host_to_device);
  s->copy(got.data(), at(1), sent.size(), copy_direction::device_to_host);
  s->synchronize();
  EXPECT_EQ(sent, got);
}

TEST_F(device_on_gpu, more_than_a_part_is_pinned_and_copied_across_the_parts) {
  const host_arena large(1_GiB + 2_MiB);
  const pin_result pinned = device_->pin(large.memory());
  ASSERT_TRUE(pinned.refusal.empty()) << pinned.refusal;
  const auto across = large.memory().subspan(1_GiB - 1_MiB, 2_MiB);
  std::fill(across.begin(), across.end(), std::byte{5});
  const auto s = make();
  s->copy(at(0), across.data(), across.size(), copy_direction::host_to_device);
  s->synchronize();
  std::fill(across.begin(), across.end(), std::byte{0});
  s->copy(across.data(), at(0), across.size(), copy_direction::device_to_host);
  s->synchronize();
  EXPECT_THAT(across, ::testing::Each(std::byte{5}));
  device_->unpin(large.memory());
}

}  // namespace

namespace conformance {
INSTANTIATE_TYPED_TEST_SUITE_P(gpu, device_copies, gpu_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(gpu, device_streams, gpu_traits);
}  // namespace conformance

}  // namespace forebay
