#include <forebay/testing/delayed_device.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/device/emulated_device.hpp>

#include "../device/conformance.hpp"

namespace forebay {
namespace {

using testing::delayed_device;
using namespace std::chrono_literals;

struct delayed_traits {
  static std::unique_ptr<device> make(byte_count capacity) {
    return std::make_unique<delayed_device>(
        emulated_device({.capacity = capacity}),
        testing::delayed_device_options{.max_h2d_delay = 200us, .max_d2h_delay = 200us, .max_d2d_delay = 200us});
  }
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
INSTANTIATE_TYPED_TEST_SUITE_P(delayed, device_copies, delayed_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(delayed, device_streams, delayed_traits);
INSTANTIATE_TYPED_TEST_SUITE_P(delayed, device_failures, delayed_traits);
}  // namespace conformance

namespace {

TEST(delayed_device, a_held_copy_starts_only_after_the_release) {
  delayed_device d(emulated_device({.capacity = 4_KiB}), {.max_h2d_delay = 0ms, .max_d2h_delay = 0ms});
  const auto s = d.make_stream(stream_kind::host_to_device);
  std::byte host{7};
  d.fill(d.arena().data(), std::byte{0}, 1);
  d.hold(copy_direction::host_to_device);
  s->copy(d.arena().data(), &host, 1, copy_direction::host_to_device);
  const stream_point point = s->record();
  EXPECT_FALSE(s->passed(point));
  EXPECT_EQ(d.arena()[0], std::byte{0});
  d.release(copy_direction::host_to_device);
  s->synchronize(point);
  EXPECT_EQ(d.arena()[0], std::byte{7});
  EXPECT_EQ(d.copies(copy_direction::host_to_device), 1U);
  EXPECT_EQ(d.copies(copy_direction::device_to_host), 0U);
}

TEST(delayed_device, just_the_chosen_copy_fails_and_it_moves_nothing) {
  delayed_device d(emulated_device({.capacity = 4_KiB}), {.max_h2d_delay = 0ms, .max_d2h_delay = 0ms});
  const auto s = d.make_stream(stream_kind::host_to_device);
  const auto t = d.make_stream(stream_kind::device_to_host);
  std::byte host{7};
  std::byte back{0};
  d.fill(d.arena().data(), std::byte{1}, 3);
  d.fail_copy(copy_direction::host_to_device, 2);
  s->copy(d.arena().data(), &host, 1, copy_direction::host_to_device);
  s->synchronize();
  t->copy(&back, d.arena().data(), 1, copy_direction::device_to_host);
  t->synchronize();
  EXPECT_EQ(back, std::byte{7});
  s->copy(d.arena().data() + 1, &host, 1, copy_direction::host_to_device);
  EXPECT_THROW(s->synchronize(), device_error);
  EXPECT_EQ(d.arena()[1], std::byte{1});
  EXPECT_EQ(t->failure(), nullptr);
}

// A delay drawn from 0..max is more than zero in nearly every draw: 50 copies can't take no time at all.
TEST(delayed_device, copies_take_the_drawn_delays) {
  const auto run = [](std::uint64_t seed) {
    delayed_device d(emulated_device({.capacity = 4_KiB}), {.max_h2d_delay = 1ms, .seed = seed});
    const auto s = d.make_stream(stream_kind::host_to_device);
    std::byte host{7};
    const time_point start = std::chrono::steady_clock::now();
    for (int i = 0; i < 50; ++i) {
      s->copy(d.arena().data(), &host, 1, copy_direction::host_to_device);
    }
    s->synchronize();
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_GE(run(1), 5ms);  // the mean is 25 ms, with a deviation of 2 ms
  EXPECT_GE(run(2), 5ms);
}

TEST(delayed_device, needs_a_device_and_sensible_delays) {
  EXPECT_THROW(delayed_device(nullptr), usage_error);
  EXPECT_THROW(delayed_device(emulated_device({.capacity = 1}), {.max_h2d_delay = -1ms}), usage_error);
}

}  // namespace
}  // namespace forebay
