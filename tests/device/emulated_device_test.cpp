#include <forebay/device/emulated_device.hpp>

#include <algorithm>
#include <vector>

#include <sys/mman.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

struct emulated_traits {
  static std::unique_ptr<device> make(byte_count capacity) { return emulated_device({.capacity = capacity}); }
  static void hold(device&, stream& s, std::atomic<bool>& released) {
    s.launch([&released] {
      while (!released) {
        std::this_thread::yield();
      }
    });
  }
  static void break_stream(stream& s) {
    s.launch([] { throw device_error("broken on purpose"); });
  }
  static std::string why_skipped() { return "never"; }
  static void done() {}
};

}  // namespace

namespace conformance {
INSTANTIATE_TYPED_TEST_SUITE_P(emulated, device_copies, emulated_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(emulated, device_streams, emulated_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(emulated, device_failures, emulated_traits);
}  // namespace conformance

namespace {

TEST(emulated_device, needs_a_capacity_that_the_machine_can_give) {
  EXPECT_THROW(static_cast<void>(emulated_device({})), usage_error);
  EXPECT_THROW(static_cast<void>(emulated_device({.capacity = ~byte_count{0}})), capacity_error);
  EXPECT_THROW(static_cast<void>(emulated_device({.capacity = byte_count{1} << 60U})), capacity_error);
}

TEST(emulated_device, any_capacity_is_exact) {
  for (const byte_count n : {1_B, 4095_B, 4097_B, 2_MiB, 2_MiB + 1, 64_MiB - 1}) {
    const auto d = emulated_device({.capacity = n});
    EXPECT_EQ(d->arena().size(), n);
    d->fill(d->arena().data(), std::byte{1}, n);
    EXPECT_THROW(d->fill(d->arena().data(), std::byte{1}, n + 1), usage_error);
  }
}

TEST(emulated_device, takes_memory_from_the_machine_as_it_is_touched) {
  const auto d = emulated_device({.capacity = 256_MiB});
  const auto resident = [&] {  // counted by the kernel
    std::vector<unsigned char> pages(256_MiB / 4_KiB);
    EXPECT_EQ(::mincore(d->arena().data(), 256_MiB, pages.data()), 0);
    return 4_KiB * static_cast<byte_count>(
                       std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1U) != 0; }));
  };
  EXPECT_EQ(resident(), 0U);
  d->fill(d->arena().data() + 64_MiB, std::byte{1}, 8_MiB);
  EXPECT_EQ(resident(), 8_MiB);
}

TEST(emulated_device, launches_run_in_order_and_may_use_the_arena) {
  const auto d = emulated_device({.capacity = 4_KiB});
  const auto s = d->make_stream(stream_kind::compute);
  auto* const values = reinterpret_cast<std::uint64_t*>(d->arena().data());
  for (std::uint64_t i = 0; i < 1000; ++i) {
    s->launch([values, i] { values[0] = values[0] * 3 + i; });
  }
  s->synchronize();
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    expected = expected * 3 + i;
  }
  EXPECT_EQ(values[0], expected);
}

TEST(emulated_device, what_a_launch_captured_is_gone_when_its_point_has_passed) {
  const auto d = emulated_device({.capacity = 4_KiB});
  const auto s = d->make_stream(stream_kind::compute);
  const auto token = std::make_shared<int>(1);
  s->launch([token] {});
  s->synchronize();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(emulated_device, the_first_exception_is_kept_and_later_work_is_skipped) {
  const auto d = emulated_device({.capacity = 4_KiB});
  const auto s = d->make_stream(stream_kind::compute);
  const auto healthy = d->make_stream(stream_kind::compute);
  int ran = 0;
  std::byte host{7};
  d->fill(d->arena().data(), std::byte{0}, 1);
  s->launch([&] { ++ran; });
  s->launch([] { throw std::runtime_error("first"); });
  s->launch([&] { ++ran; });
  s->launch([] { throw std::runtime_error("second"); });
  s->copy(d->arena().data(), &host, 1, copy_direction::host_to_device);
  healthy->wait(*s, s->record());
  healthy->launch([&] { ran += 10; });
  EXPECT_NO_THROW(healthy->synchronize());
  EXPECT_EQ(ran, 11);
  EXPECT_EQ(d->arena()[0], std::byte{0});
  EXPECT_EQ(healthy->failure(), nullptr);
  try {
    s->synchronize();
    FAIL() << "the failure was lost";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "first");
  }
}

TEST(emulated_device, points_that_do_not_exist_yet_and_foreign_streams_are_refused) {
  const auto d = emulated_device({.capacity = 4_KiB});
  const auto other_device = emulated_device({.capacity = 4_KiB});
  const auto s = d->make_stream(stream_kind::compute);
  const auto t = d->make_stream(stream_kind::compute);
  const auto foreign = other_device->make_stream(stream_kind::compute);
  EXPECT_THROW(s->wait(*t, t->record() + 1), usage_error);
  EXPECT_THROW(s->wait(*foreign, 0), usage_error);
  EXPECT_THROW(s->launch(nullptr), usage_error);
  EXPECT_THROW(s->notify(nullptr), usage_error);
  s->wait(*s, s->record());  // in order anyhow
  s->synchronize();
}

TEST(emulated_device, recording_and_waiting_for_passed_points_enqueues_nothing) {
  const auto d = emulated_device({.capacity = 4_KiB});
  const auto s = d->make_stream(stream_kind::compute);
  const auto t = d->make_stream(stream_kind::compute);
  s->launch([] {});
  s->synchronize();
  const stream_point before = t->record();
  for (int i = 0; i < 10; ++i) {
    t->wait(*s, s->record());
  }
  EXPECT_EQ(t->record(), before);
  EXPECT_EQ(s->record(), 1U);
}

TEST(emulated_device, a_wait_with_nothing_behind_it_is_no_time_lost) {
  const auto d = emulated_device({.capacity = 4_KiB});
  const auto other = d->make_stream(stream_kind::compute);
  const auto s = d->make_stream(stream_kind::compute);
  std::atomic<bool> released{false};
  emulated_traits::hold(*d, *other, released);
  s->wait(*other, other->record());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the injected delay that is not to be counted
  EXPECT_EQ(s->waited(), duration::zero());
  released = true;
  s->synchronize();
  EXPECT_EQ(s->waited(), duration::zero());
}

// 100 ms of work at the rate; a machine under load may take longer, never less.
TEST(emulated_device, a_rated_link_takes_at_least_bytes_over_rate_for_all_its_streams_together) {
  constexpr byte_count bytes = 5_MiB;
  const auto d = emulated_device({.capacity = 2 * bytes, .h2d_bytes_per_second = 100_MiB});
  const auto a = d->make_stream(stream_kind::host_to_device);
  const auto b = d->make_stream(stream_kind::host_to_device);
  const std::vector<std::byte> sent(bytes, std::byte{9});
  std::vector<std::byte> got(bytes);
  const time_point start = std::chrono::steady_clock::now();
  a->copy(d->arena().data(), sent.data(), bytes, copy_direction::host_to_device);
  b->copy(d->arena().data() + bytes, sent.data(), bytes, copy_direction::host_to_device);
  a->synchronize();
  b->synchronize();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  a->copy(got.data(), d->arena().data() + bytes, bytes, copy_direction::device_to_host);
  a->synchronize();
  EXPECT_EQ(got, sent);
}

TEST(emulated_device, many_small_copies_on_a_rated_link_take_the_time_of_their_sum) {
  constexpr byte_count bytes = 1000;
  constexpr int copies = 500;
  const auto d = emulated_device({.capacity = 4_KiB, .d2h_bytes_per_second = 10'000'000});
  const auto s = d->make_stream(stream_kind::device_to_host);
  std::vector<std::byte> got(bytes);
  const time_point start = std::chrono::steady_clock::now();
  for (int i = 0; i < copies; ++i) {
    s->copy(got.data(), d->arena().data(), bytes, copy_direction::device_to_host);
  }
  s->synchronize();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

TEST(emulated_device, pinning_stops_at_the_limit_and_says_so) {
  const auto d = emulated_device({.capacity = 4_KiB, .pin_limit = 16_MiB});
  std::vector<std::byte> first(10_MiB);
  std::vector<std::byte> second(10_MiB);
  EXPECT_EQ(d->pin(first).pinned_bytes, 10_MiB);
  const pin_result partly = d->pin(second);
  EXPECT_EQ(partly.pinned_bytes, 6_MiB);
  EXPECT_THAT(partly.refusal, HasSubstr("page-locked host memory: wanted 10 MiB (10485760 bytes)"));
  EXPECT_THAT(partly.refusal, HasSubstr("limit is 16 MiB"));
  d->unpin(first);
  d->unpin(second);
  const pin_result all = d->pin(second);
  EXPECT_EQ(all.pinned_bytes, 10_MiB);
  EXPECT_TRUE(all.refusal.empty());
  d->unpin(second);
}

TEST(emulated_device, nothing_is_pinned_where_the_limit_is_zero) {
  const auto d = emulated_device({.capacity = 4_KiB, .pin_limit = 0});
  std::vector<std::byte> host(4096);
  const pin_result none = d->pin(host);
  EXPECT_EQ(none.pinned_bytes, 0U);
  EXPECT_FALSE(none.refusal.empty());
  d->unpin(host);
}

}  // namespace
}  // namespace forebay
