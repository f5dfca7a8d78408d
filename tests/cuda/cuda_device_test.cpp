#include <forebay/cuda.hpp>

#include <array>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/device/emulated_device.hpp>

#include "../device/conformance.hpp"
#include "fake_cudart.hpp"

namespace forebay {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::fake_cudart;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

/// Occupies a stream by the run-time's own means, as kernels of the user would.
void hold_with_host_function(stream& s, std::atomic<bool>& released) {
  const auto spin = [](void* data) {
    while (!*static_cast<std::atomic<bool>*>(data)) {
      std::this_thread::yield();
    }
  };
  ASSERT_EQ(cudaLaunchHostFunc(native_stream(s), spin, &released), cudaSuccess);
}

struct fake_traits {
  static inline std::optional<fake_cudart> cudart;

  static std::unique_ptr<device> make(byte_count capacity) {
    cudart.emplace();
    return cuda_device(0, capacity);
  }
  static void hold(device&, stream& s, std::atomic<bool>& released) { hold_with_host_function(s, released); }
  static void break_stream(stream& s) { fake_cudart::break_behind(native_stream(s)); }
  static std::string why_skipped() { return "never"; }
  static void done() {
    EXPECT_THAT(fake_cudart::leaks(), IsEmpty());
    cudart.reset();
  }
};

}  // namespace

namespace conformance {
INSTANTIATE_TYPED_TEST_SUITE_P(fake_cuda, device_copies, fake_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(fake_cuda, device_streams, fake_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(fake_cuda, device_failures, fake_traits);
}  // namespace conformance

namespace {

TEST(cuda_device_on_fake, says_what_is_wrong_when_there_is_no_device) {
  const fake_cudart cudart({.devices = 0});
  EXPECT_EQ(cuda_device_count(), 0);
  try {
    static_cast<void>(cuda_device(0, 1_MiB));
    FAIL() << "a device that does not exist";
  } catch (const unsupported_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("no CUDA device 0"));
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(cuda_device_on_fake, an_ordinal_beyond_the_devices_and_no_capacity_are_refused) {
  const fake_cudart cudart({.devices = 2});
  EXPECT_EQ(cuda_device_count(), 2);
  EXPECT_THROW(static_cast<void>(cuda_device(2, 1_MiB)), unsupported_error);
  EXPECT_THROW(static_cast<void>(cuda_device(-1, 1_MiB)), unsupported_error);
  EXPECT_THROW(static_cast<void>(cuda_device(0, 0)), usage_error);
}

TEST(cuda_device_on_fake, too_large_an_arena_is_a_capacity_error_and_leaves_no_error_behind) {
  const fake_cudart cudart({.memory = 10_MiB});
  try {
    static_cast<void>(cuda_device(0, 10_MiB + 1));
    FAIL() << "more than there is";
  } catch (const capacity_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("10485761 bytes"));
    EXPECT_THAT(e.what(), HasSubstr("10 MiB are free"));
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_THAT(fake_cudart::leaks(), IsEmpty());
  EXPECT_EQ(cuda_device(0, 10_MiB)->arena().size(), 10_MiB);
}

TEST(cuda_device_on_fake, a_small_allocation_off_a_page_is_aligned_and_exact) {
  const fake_cudart cudart({.allocation_shift = 512});
  const auto d = cuda_device(0, 5000);
  EXPECT_EQ(d->arena().size(), 5000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(d->arena().data()) % 4096, 0U);
  d->fill(d->arena().data(), std::byte{1}, 5000);  // the fake refuses what is outside the allocation
}

TEST(cuda_device_on_fake, leaves_the_callers_device_current) {
  const fake_cudart cudart({.devices = 2});
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  {
    const auto d = cuda_device(1, 1_MiB);
    EXPECT_EQ(d->name(), "cuda:1 fake 1");
    const auto s = d->make_stream(stream_kind::compute);
    s->synchronize();
    int now = -1;
    ASSERT_EQ(cudaGetDevice(&now), cudaSuccess);
    EXPECT_EQ(now, 0);
  }
  int now = -1;
  ASSERT_EQ(cudaGetDevice(&now), cudaSuccess);
  EXPECT_EQ(now, 0);
}

TEST(cuda_device_on_fake, host_code_is_not_launched_on_device_memory) {
  const fake_cudart cudart;
  const auto d = cuda_device(0, 1_MiB);
  EXPECT_FALSE(d->host_addressable());
  EXPECT_THROW(d->make_stream(stream_kind::compute)->launch([] {}), unsupported_error);
}

// A refused registration must not be what a later call of the user's reports, and what is not pinned must still be
// copied, also across the border.
TEST(cuda_device_on_fake, beyond_the_limit_memory_stays_pageable_and_copies_cross_the_border) {
  const fake_cudart cudart({.register_limit = 1_GiB});
  const auto d = cuda_device(0, 8_MiB);
  host_arena host(1_GiB + 8_MiB, {.huge_pages = false});
  const pin_result r = d->pin(host.memory());
  EXPECT_EQ(r.pinned_bytes, 1_GiB);
  EXPECT_THAT(r.refusal, HasSubstr("page-locked host memory: wanted 1.01 GiB (1082130432 bytes)"));
  EXPECT_THAT(r.refusal, HasSubstr("cudaErrorMemoryAllocation"));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);

  const auto across = host.memory().subspan(1_GiB - 1_MiB, 2_MiB);
  std::fill(across.begin(), across.end(), std::byte{5});
  across[1_MiB] = std::byte{6};
  std::vector<std::byte> got(across.size());
  const auto s = d->make_stream(stream_kind::host_to_device);
  s->copy(d->arena().data(), across.data(), across.size(), copy_direction::host_to_device);
  s->copy(got.data(), d->arena().data(), got.size(), copy_direction::device_to_host);
  s->synchronize();
  EXPECT_TRUE(std::equal(got.begin(), got.end(), across.begin()));
  d->unpin(host.memory());
  EXPECT_THAT(fake_cudart::registered_sizes(), IsEmpty());
}

TEST(cuda_device_on_fake, large_memory_is_pinned_in_parts_and_copies_cross_them) {
  const fake_cudart cudart;
  const auto d = cuda_device(0, 8_MiB);
  const host_arena host(2_GiB + 4_KiB, {.huge_pages = false});
  EXPECT_EQ(d->pin(host.memory()).pinned_bytes, host.size());
  EXPECT_THAT(fake_cudart::registered_sizes(), ElementsAre(1_GiB, 1_GiB, 4_KiB));
  const auto s = d->make_stream(stream_kind::device_to_host);
  d->fill(d->arena().data(), std::byte{7}, 8_MiB);
  for (const byte_count border : {1_GiB, 2_GiB}) {
    const auto across = host.memory().subspan(border - 4_KiB, 8_KiB);
    s->copy(across.data(), d->arena().data(), across.size(), copy_direction::device_to_host);
    s->synchronize();
    EXPECT_THAT(across, Each(std::byte{7}));
  }
  // The device gives back what is still pinned at its end; the traits of the conformance suite check the rest.
}

TEST(cuda_device_on_fake, a_refused_call_is_the_callers_error_and_the_stream_stays_healthy) {
  const fake_cudart cudart;
  const auto d = cuda_device(0, 1_MiB);
  const auto s = d->make_stream(stream_kind::compute);
  std::byte host{3};
  int called = 0;
  fake_cudart::fail_next("cudaMemcpyAsync", cudaErrorInvalidValue);
  try {
    s->copy(d->arena().data(), &host, 1, copy_direction::host_to_device);
    FAIL() << "the refusal was lost";
  } catch (const device_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("cudaMemcpyAsync failed: cudaErrorInvalidValue"));
  }
  fake_cudart::fail_next("cudaStreamAddCallback", cudaErrorInvalidValue);
  EXPECT_THROW(s->notify([&] { ++called; }), device_error);
  fake_cudart::fail_next("cudaEventRecord", cudaErrorInvalidValue);
  EXPECT_THROW(static_cast<void>(s->record()), device_error);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(s->failure(), nullptr);
  s->notify([&] { called += 10; });
  s->synchronize();
  EXPECT_EQ(called, 10);
}

TEST(cuda_device_on_fake, a_broken_context_fails_every_stream_and_loses_no_callback) {
  const fake_cudart cudart;
  const auto d = cuda_device(0, 1_MiB);
  const auto s = d->make_stream(stream_kind::compute);
  const auto t = d->make_stream(stream_kind::compute);
  std::atomic<bool> released{false};
  std::vector<int> order;
  hold_with_host_function(*s, released);
  fake_cudart::break_behind(native_stream(*s));
  for (int i = 0; i < 5; ++i) {
    s->notify([&order, i] { order.push_back(i); });
  }
  const stream_point point = s->record();
  t->wait(*s, point);
  released = true;
  EXPECT_THROW(s->synchronize(point), device_error);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_NE(t->failure(), nullptr);
  EXPECT_TRUE(t->passed(t->record()));
  EXPECT_NE(t->idle_since(), time_point::max());
  EXPECT_THROW(d->fill(d->arena().data(), std::byte{1}, 1), device_error);
}

TEST(cuda_device_on_fake, a_context_found_broken_at_any_call_is_a_failure_of_the_stream_and_no_refusal) {
  for (const int calls_before : {0, 1, 2, 3, 4}) {
    std::atomic<bool> released{false};  // the streams' threads still read it while they end
    const fake_cudart cudart;
    const auto d = cuda_device(0, 1_MiB);
    const auto other = d->make_stream(stream_kind::compute);
    hold_with_host_function(*other, released);
    const stream_point pending = other->record();
    const auto s = d->make_stream(stream_kind::compute);
    std::byte host{3};
    int called = 0;
    auto calls = std::to_array<unique_function<void()>>(
        {[&] { s->copy(d->arena().data(), &host, 1, copy_direction::host_to_device); },
         [&] { s->notify([&] { ++called; }); }, [&] { static_cast<void>(s->record()); },
         [&] { s->wait(*other, pending); }});
    for (int i = 0; i < 4; ++i) {
      if (i == calls_before) {
        fake_cudart::break_behind(native_stream(*s));
        ASSERT_EQ(fake_cudart::wait_until_broken(), cudaErrorIllegalAddress);
      }
      EXPECT_NO_THROW(calls[static_cast<std::size_t>(i)]()) << "call " << i << ", broken before " << calls_before;
    }
    if (calls_before == 4) {
      released = true;
      fake_cudart::break_behind(native_stream(*s));
      ASSERT_EQ(fake_cudart::wait_until_broken(), cudaErrorIllegalAddress);
    }
    released = true;
    EXPECT_THROW(s->synchronize(), device_error);
    EXPECT_EQ(called, 1);
  }
}

TEST(cuda_device_on_fake, events_are_used_again) {
  const fake_cudart cudart;
  const auto d = cuda_device(0, 1_MiB);
  const auto s = d->make_stream(stream_kind::compute);
  const std::uint64_t before = fake_cudart::events_made();
  for (int i = 0; i < 1000; ++i) {
    s->synchronize(s->record());
  }
  EXPECT_LE(fake_cudart::events_made() - before, 3U);
}

TEST(cuda_device_on_fake, a_callers_stream_is_wrapped_and_left_to_the_caller) {
  const fake_cudart cudart;
  const auto d = cuda_device(0, 1_MiB);
  cudaStream_t handle = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), cudaSuccess);
  std::atomic<bool> released{false};
  {
    const auto s = wrap_stream(*d, handle);
    EXPECT_EQ(native_stream(*s), handle);
    hold_with_host_function(*s, released);  // the user's own work, of which the wrapper was not told
    const stream_point point = s->record();
    EXPECT_FALSE(s->passed(point));
    released = true;
    s->synchronize(point);
  }
  EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess);
  const auto emulated = emulated_device({.capacity = 1});
  EXPECT_THROW(static_cast<void>(wrap_stream(*emulated, handle)), usage_error);
  EXPECT_THROW(static_cast<void>(native_stream(*emulated->make_stream(stream_kind::compute))), usage_error);
}

}  // namespace
}  // namespace forebay
