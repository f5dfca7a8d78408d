#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/device/device.hpp>

namespace forebay::conformance {

/// What every device must do, whatever it is made of. A `Traits` type gives:
///   static std::unique_ptr<device> make(byte_count capacity);   // may be null: then the tests are skipped
///   static void hold(device&, stream&, std::atomic<bool>& released);
///       // later work of the stream does not start before `released` is true
///   static void break_stream(stream&);                          // makes the stream fail asynchronously
///   static std::string why_skipped();
template <typename Traits>
class device_conformance : public ::testing::Test {
 protected:
  static constexpr byte_count capacity = 8_MiB + 4_KiB;

  void SetUp() override {
    device_ = Traits::make(capacity);
    if (!device_) {
      GTEST_SKIP() << Traits::why_skipped();
    }
  }

  [[nodiscard]] std::unique_ptr<stream> make(stream_kind kind = stream_kind::compute) {
    return device_->make_stream(kind);
  }
  [[nodiscard]] std::byte* at(byte_count offset) { return device_->arena().data() + offset; }

  static std::vector<std::byte> random_bytes(std::size_t n, std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::vector<std::byte> result(n);
    for (std::byte& b : result) {
      b = static_cast<std::byte>(generator() & 0xffU);
    }
    return result;
  }

  std::unique_ptr<device> device_;
};

TYPED_TEST_SUITE_P(device_conformance);

TYPED_TEST_P(device_conformance, arena_is_exactly_the_capacity_and_aligned) {
  EXPECT_EQ(this->device_->arena().size(), this->capacity);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this->device_->arena().data()) % 4096, 0U);
  EXPECT_FALSE(this->device_->name().empty());
}

TYPED_TEST_P(device_conformance, bytes_go_down_across_and_up_again) {
  const auto sent = this->random_bytes(3'000'001, 1);
  std::vector<std::byte> got(sent.size());
  const auto s = this->make();
  s->copy(this->at(1), sent.data(), sent.size(), copy_direction::host_to_device);
  s->copy(this->at(4_MiB), this->at(1), sent.size(), copy_direction::device_to_device);
  s->copy(got.data(), this->at(4_MiB), sent.size(), copy_direction::device_to_host);
  s->synchronize();
  EXPECT_EQ(sent, got);
}

TYPED_TEST_P(device_conformance, the_last_byte_of_the_arena_can_be_used_and_the_next_can_not) {
  std::array<std::byte, 2> host{std::byte{7}, std::byte{9}};
  const auto s = this->make();
  s->copy(this->at(this->capacity - 2), host.data(), 2, copy_direction::host_to_device);
  s->synchronize();
  host = {};
  EXPECT_THROW(s->copy(this->at(this->capacity - 1), host.data(), 2, copy_direction::host_to_device), usage_error);
  EXPECT_THROW(s->copy(host.data(), this->at(this->capacity - 1), 2, copy_direction::device_to_host), usage_error);
  s->copy(host.data(), this->at(this->capacity - 2), 2, copy_direction::device_to_host);
  s->synchronize();
  EXPECT_EQ(host[0], std::byte{7});
  EXPECT_EQ(host[1], std::byte{9});
}

TYPED_TEST_P(device_conformance, wrong_ranges_are_refused_and_change_nothing) {
  std::vector<std::byte> host(64);
  const auto s = this->make();
  const stream_point before = s->record();
  const byte_count huge = ~byte_count{0};
  EXPECT_THROW(s->copy(this->at(0), nullptr, 1, copy_direction::host_to_device), usage_error);
  EXPECT_THROW(s->copy(nullptr, this->at(0), 1, copy_direction::device_to_host), usage_error);
  EXPECT_THROW(s->copy(host.data(), host.data() + 32, 32, copy_direction::host_to_device), usage_error);
  EXPECT_THROW(s->copy(this->at(0), this->at(8192), 8, copy_direction::host_to_device), usage_error);
  EXPECT_THROW(s->copy(this->at(0), this->at(8192), 8, copy_direction::device_to_host), usage_error);
  EXPECT_THROW(s->copy(this->at(0), this->at(7), 8, copy_direction::device_to_device), usage_error);
  EXPECT_THROW(s->copy(this->at(0), host.data(), huge, copy_direction::host_to_device), usage_error);
  EXPECT_THROW(this->device_->fill(this->at(1), std::byte{1}, this->capacity), usage_error);
  EXPECT_THROW(s->synchronize(s->record() + 1), usage_error);
  EXPECT_EQ(s->failure(), nullptr);
  s->synchronize(before);
  s->copy(nullptr, nullptr, 0, copy_direction::host_to_device);  // nothing to copy is fine anywhere
  s->synchronize();
}

TYPED_TEST_P(device_conformance, fill_writes_just_its_range) {
  std::vector<std::byte> got(64);
  this->device_->fill(this->at(0), std::byte{0x11}, 64);
  this->device_->fill(this->at(8), std::byte{0xff}, 16);
  const auto s = this->make();
  s->copy(got.data(), this->at(0), got.size(), copy_direction::device_to_host);
  s->synchronize();
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i], i >= 8 && i < 24 ? std::byte{0xff} : std::byte{0x11}) << i;
  }
}

TYPED_TEST_P(device_conformance, points_pass_in_order_and_never_before_the_work_in_front_of_them) {
  std::atomic<bool> released{false};
  const std::vector<std::byte> sent(16, std::byte{5});
  std::vector<std::byte> got(16);
  const auto s = this->make();
  EXPECT_TRUE(s->passed(0));
  TypeParam::hold(*this->device_, *s, released);
  s->copy(this->at(0), sent.data(), sent.size(), copy_direction::host_to_device);
  const stream_point first = s->record();
  s->copy(got.data(), this->at(0), got.size(), copy_direction::device_to_host);
  const stream_point second = s->record();
  EXPECT_GT(first, 0U);
  EXPECT_GT(second, first);
  EXPECT_FALSE(s->passed(first));
  EXPECT_FALSE(s->passed(second));
  EXPECT_EQ(s->idle_since(), time_point::max());
  released = true;
  s->synchronize(second);
  EXPECT_TRUE(s->passed(first));
  EXPECT_TRUE(s->passed(second));
  EXPECT_EQ(got, sent);
}

TYPED_TEST_P(device_conformance, idle_since_is_when_the_work_ended) {
  const time_point before = std::chrono::steady_clock::now();
  const auto s = this->make();
  EXPECT_LE(s->idle_since(), std::chrono::steady_clock::now());
  std::vector<std::byte> host(4096);
  s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
  s->synchronize();
  const time_point since = s->idle_since();
  EXPECT_GE(since, before);
  EXPECT_LE(since, std::chrono::steady_clock::now());
  EXPECT_EQ(s->idle_since(), since);  // it does not move while nothing happens
}

TYPED_TEST_P(device_conformance, a_stream_waits_for_another_streams_point_and_for_no_more) {
  std::atomic<bool> first_released{false};
  std::atomic<bool> second_released{false};
  const auto sent = this->random_bytes(1'000'000, 2);
  std::vector<std::byte> got(sent.size());
  const auto up = this->make(stream_kind::host_to_device);
  const auto down = this->make(stream_kind::device_to_host);
  TypeParam::hold(*this->device_, *up, first_released);
  up->copy(this->at(0), sent.data(), sent.size(), copy_direction::host_to_device);
  const stream_point arrived = up->record();
  TypeParam::hold(*this->device_, *up, second_released);
  down->wait(*up, arrived);
  down->copy(got.data(), this->at(0), got.size(), copy_direction::device_to_host);
  const stream_point done = down->record();
  EXPECT_FALSE(down->passed(done));
  EXPECT_EQ(down->idle_since(), time_point::max());
  first_released = true;
  down->synchronize(done);  // would hang, were it to wait for all of `up`
  EXPECT_EQ(got, sent);
  second_released = true;
  up->synchronize();
}

TYPED_TEST_P(device_conformance, time_in_waits_counts_once_work_stands_behind_them) {
  std::atomic<bool> released{false};
  std::vector<std::byte> host(64);
  const auto other = this->make();
  const auto s = this->make();
  EXPECT_EQ(s->waited(), duration::zero());
  TypeParam::hold(*this->device_, *other, released);
  s->wait(*other, other->record());
  s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
  const time_point from = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the injected delay that is to be counted
  released = true;
  s->synchronize();
  const duration upper = std::chrono::steady_clock::now() - from + std::chrono::milliseconds(20);
  EXPECT_GT(s->waited(), duration::zero());
  EXPECT_LE(s->waited(), upper + std::chrono::seconds(1));
  const duration total = s->waited();
  s->wait(*other, other->record());  // has passed: costs nothing
  s->synchronize();
  EXPECT_LE(s->waited() - total, std::chrono::milliseconds(20));
}

TYPED_TEST_P(device_conformance, a_stream_may_be_waited_for_and_be_destroyed_first) {
  std::vector<std::byte> host(64, std::byte{3});
  std::vector<std::byte> got(64);
  std::atomic<bool> released{false};
  auto other = this->make();
  const auto s = this->make();
  TypeParam::hold(*this->device_, *other, released);
  other->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
  s->wait(*other, other->record());
  s->copy(got.data(), this->at(0), got.size(), copy_direction::device_to_host);
  released = true;
  other.reset();
  s->synchronize();
  EXPECT_EQ(got, host);
}

TYPED_TEST_P(device_conformance, destruction_waits_for_all_the_work) {
  const auto sent = this->random_bytes(4'000'000, 3);
  std::vector<std::byte> got(sent.size());
  std::atomic<int> called{0};
  {
    const auto s = this->make();
    s->copy(this->at(0), sent.data(), sent.size(), copy_direction::host_to_device);
    s->copy(got.data(), this->at(0), got.size(), copy_direction::device_to_host);
    s->notify([&] { ++called; });
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(called, 1);
}

TYPED_TEST_P(device_conformance, callbacks_come_in_stream_order_from_another_thread_and_see_the_bytes) {
  constexpr int rounds = 100;
  const std::vector<std::byte> ones(1000, std::byte{1});
  std::vector<std::byte> got(rounds * ones.size());
  std::vector<int> order;
  std::atomic<int> right{0};
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> elsewhere{true};
  const auto s = this->make();
  s->copy(this->at(0), ones.data(), ones.size(), copy_direction::host_to_device);
  for (int i = 0; i < rounds; ++i) {
    std::byte* const slot = got.data() + static_cast<std::size_t>(i) * ones.size();
    s->copy(slot, this->at(0), ones.size(), copy_direction::device_to_host);
    s->notify([&, i, slot] {
      order.push_back(i);
      right += std::memcmp(slot, ones.data(), ones.size()) == 0 ? 1 : 0;
      elsewhere = elsewhere && std::this_thread::get_id() != caller;
    });
  }
  s->synchronize();
  std::vector<int> expected(rounds);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(right, rounds);
  EXPECT_TRUE(elsewhere);
}

TYPED_TEST_P(device_conformance, many_threads_enqueue_on_one_stream) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t each = 200;
  constexpr std::size_t bytes = 64;
  const auto sent = this->random_bytes(threads * each * bytes, 4);
  std::vector<std::byte> got(sent.size());
  std::atomic<std::size_t> called{0};
  const auto s = this->make();
  std::vector<std::thread> pool;
  for (std::size_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      for (std::size_t i = 0; i < each; ++i) {
        const std::size_t place = (t * each + i) * bytes;
        s->copy(this->at(place), sent.data() + place, bytes, copy_direction::host_to_device);
        s->copy(got.data() + place, this->at(place), bytes, copy_direction::device_to_host);
        s->notify([&] { ++called; });
        if (i % 50 == 0) {
          s->synchronize(s->record());
        }
      }
    });
  }
  for (std::thread& t : pool) {
    t.join();
  }
  s->synchronize();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(called, threads * each);
}

TYPED_TEST_P(device_conformance, a_ring_of_waits_over_many_streams_keeps_every_order) {
  constexpr std::size_t streams = 5;
  constexpr std::size_t rounds = 300;
  constexpr std::size_t bytes = 256;
  const auto sent = this->random_bytes(bytes, 5);
  std::vector<std::unique_ptr<stream>> all;
  for (std::size_t i = 0; i < streams; ++i) {
    all.push_back(this->make());
  }
  std::vector<std::byte> got(bytes);
  all[0]->copy(this->at(0), sent.data(), bytes, copy_direction::host_to_device);
  stream_point last = all[0]->record();
  std::size_t previous = 0;
  for (std::size_t i = 1; i <= rounds; ++i) {
    const std::size_t now = i * 3 % streams;  // each hop copies what the hop before it wrote
    all[now]->wait(*all[previous], last);
    all[now]->copy(this->at(i * bytes), this->at((i - 1) * bytes), bytes, copy_direction::device_to_device);
    last = all[now]->record();
    previous = now;
  }
  all[previous]->copy(got.data(), this->at(rounds * bytes), bytes, copy_direction::device_to_host);
  all[previous]->synchronize();
  EXPECT_EQ(got, sent);
}

TYPED_TEST_P(device_conformance, a_failed_stream_goes_on_passing_points_and_calling_back) {
  std::vector<std::byte> host(16, std::byte{1});
  std::atomic<int> called{0};
  const auto s = this->make();
  TypeParam::break_stream(*s);
  s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
  s->notify([&] { ++called; });
  const stream_point point = s->record();
  EXPECT_THROW(s->synchronize(point), device_error);
  EXPECT_TRUE(s->passed(point));
  EXPECT_EQ(called, 1);
  EXPECT_NE(s->failure(), nullptr);
  s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);  // skipped, not refused
  s->notify([&] { ++called; });
  EXPECT_THROW(s->synchronize(), device_error);
  EXPECT_EQ(called, 2);
}

TYPED_TEST_P(device_conformance, pinned_memory_can_be_copied_from_and_given_back) {
  const auto s = this->make();
  std::vector<std::byte> got(3 * 4096);
  alignas(4096) static std::array<std::byte, std::size_t{3} * 4096> host;
  for (int round = 0; round < 3; ++round) {
    host.fill(static_cast<std::byte>(round + 1));
    const pin_result pinned = this->device_->pin(host);
    EXPECT_TRUE(pinned.refusal.empty()) << pinned.refusal;
    EXPECT_EQ(pinned.pinned_bytes, host.size());
    EXPECT_THROW(static_cast<void>(this->device_->pin(std::span(host).subspan(4096, 4096))), usage_error);
    s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
    s->copy(got.data(), this->at(0), got.size(), copy_direction::device_to_host);
    s->synchronize();
    EXPECT_TRUE(std::equal(got.begin(), got.end(), host.begin()));
    this->device_->unpin(host);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    device_conformance, arena_is_exactly_the_capacity_and_aligned, bytes_go_down_across_and_up_again,
    the_last_byte_of_the_arena_can_be_used_and_the_next_can_not, wrong_ranges_are_refused_and_change_nothing,
    fill_writes_just_its_range, points_pass_in_order_and_never_before_the_work_in_front_of_them,
    idle_since_is_when_the_work_ended, a_stream_waits_for_another_streams_point_and_for_no_more,
    time_in_waits_counts_once_work_stands_behind_them, a_stream_may_be_waited_for_and_be_destroyed_first,
    destruction_waits_for_all_the_work, callbacks_come_in_stream_order_from_another_thread_and_see_the_bytes,
    many_threads_enqueue_on_one_stream, a_ring_of_waits_over_many_streams_keeps_every_order,
    a_failed_stream_goes_on_passing_points_and_calling_back, pinned_memory_can_be_copied_from_and_given_back);

}  // namespace forebay::conformance
