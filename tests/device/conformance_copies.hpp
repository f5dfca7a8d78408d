#pragma once

#include <array>
#include <cstring>
#include <numeric>

#include "conformance_fixture.hpp"

namespace forebay::conformance {

/// What a device does with bytes: capacity, copies, fill, pinning, callbacks.
template <typename Traits>
class device_copies : public conformance_test<Traits> {};

TYPED_TEST_SUITE_P(device_copies);

TYPED_TEST_P(device_copies, arena_is_exactly_the_capacity_and_aligned) {
  EXPECT_EQ(this->device_->arena().size(), this->capacity);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this->device_->arena().data()) % 4096, 0U);
  EXPECT_FALSE(this->device_->name().empty());
}

TYPED_TEST_P(device_copies, bytes_go_down_across_and_up_again) {
  const auto sent = this->random_bytes(3'000'001, 1);
  std::vector<std::byte> got(sent.size());
  const auto s = this->make();
  s->copy(this->at(1), sent.data(), sent.size(), copy_direction::host_to_device);
  s->copy(this->at(4_MiB), this->at(1), sent.size(), copy_direction::device_to_device);
  s->copy(got.data(), this->at(4_MiB), sent.size(), copy_direction::device_to_host);
  s->synchronize();
  EXPECT_EQ(sent, got);
}

TYPED_TEST_P(device_copies, the_last_byte_of_the_arena_can_be_used_and_the_next_can_not) {
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

TYPED_TEST_P(device_copies, wrong_ranges_are_refused_and_change_nothing) {
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

TYPED_TEST_P(device_copies, fill_writes_just_its_range) {
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

TYPED_TEST_P(device_copies, destruction_waits_for_all_the_work) {
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

TYPED_TEST_P(device_copies, callbacks_come_in_stream_order_from_another_thread_and_see_the_bytes) {
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

TYPED_TEST_P(device_copies, many_threads_enqueue_on_one_stream) {
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

TYPED_TEST_P(device_copies, pinned_memory_can_be_copied_from_and_given_back) {
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

REGISTER_TYPED_TEST_SUITE_P(device_copies, arena_is_exactly_the_capacity_and_aligned, bytes_go_down_across_and_up_again,
                            the_last_byte_of_the_arena_can_be_used_and_the_next_can_not,
                            wrong_ranges_are_refused_and_change_nothing, fill_writes_just_its_range,
                            destruction_waits_for_all_the_work,
                            callbacks_come_in_stream_order_from_another_thread_and_see_the_bytes,
                            many_threads_enqueue_on_one_stream, pinned_memory_can_be_copied_from_and_given_back);

}  // namespace forebay::conformance
