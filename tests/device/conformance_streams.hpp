#pragma once

#include <memory>
#include <vector>

#include "conformance_fixture.hpp"

namespace forebay::conformance {

/// What a device does with time: points and waits between streams.
template <typename Traits>
class device_streams : public conformance_test<Traits> {};

TYPED_TEST_SUITE_P(device_streams);

TYPED_TEST_P(device_streams, points_pass_in_order_and_never_before_the_work_in_front_of_them) {
  std::atomic<bool> released{false};
  const auto sent = this->host(16, std::byte{5});
  const auto got = this->host(16);
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
  EXPECT_TRUE(this->same(got, sent));
}

TYPED_TEST_P(device_streams, idle_since_is_when_the_work_ended) {
  const time_point before = std::chrono::steady_clock::now();
  const auto s = this->make();
  EXPECT_LE(s->idle_since(), std::chrono::steady_clock::now());
  const auto host = this->host(4096);
  s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
  s->synchronize();
  const time_point since = s->idle_since();
  EXPECT_GE(since, before);
  EXPECT_LE(since, std::chrono::steady_clock::now());
  EXPECT_EQ(s->idle_since(), since);  // it does not move while nothing happens
}

TYPED_TEST_P(device_streams, a_stream_waits_for_another_streams_point_and_for_no_more) {
  std::atomic<bool> first_released{false};
  std::atomic<bool> second_released{false};
  const auto sent = this->random_host(1'000'000, 2);
  const auto got = this->host(sent.size());
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
  EXPECT_TRUE(this->same(got, sent));
  second_released = true;
  up->synchronize();
}

TYPED_TEST_P(device_streams, time_in_waits_counts_once_work_stands_behind_them) {
  std::atomic<bool> released{false};
  const auto host = this->host(64);
  const auto other = this->make();
  const auto s = this->make();
  const time_point from = std::chrono::steady_clock::now();
  EXPECT_EQ(s->waited(), duration::zero());
  TypeParam::hold(*this->device_, *other, released);
  const stream_point point = other->record();
  s->wait(*other, point);
  s->copy(this->at(0), host.data(), host.size(), copy_direction::host_to_device);
  while (s->waited() == duration::zero()) {  // would hang, were the wait not counted while it lasts
    std::this_thread::yield();
  }
  released = true;
  s->synchronize();
  const duration total = s->waited();
  EXPECT_GT(total, duration::zero());
  EXPECT_LE(total, std::chrono::steady_clock::now() - from);
  s->wait(*other, point);  // has passed: costs nothing
  s->synchronize();
  EXPECT_EQ(s->waited(), total);
}

TYPED_TEST_P(device_streams, a_stream_may_be_waited_for_and_be_destroyed_first) {
  const auto host = this->host(64, std::byte{3});
  const auto got = this->host(64);
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
  EXPECT_TRUE(this->same(got, host));
}

TYPED_TEST_P(device_streams, a_ring_of_waits_over_many_streams_keeps_every_order) {
  constexpr std::size_t streams = 5;
  constexpr std::size_t rounds = 300;
  constexpr std::size_t bytes = 256;
  const auto sent = this->random_host(bytes, 5);
  std::vector<std::unique_ptr<stream>> all;
  for (std::size_t i = 0; i < streams; ++i) {
    all.push_back(this->make());
  }
  const auto got = this->host(bytes);
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
  EXPECT_TRUE(this->same(got, sent));
}

REGISTER_TYPED_TEST_SUITE_P(device_streams, points_pass_in_order_and_never_before_the_work_in_front_of_them,
                            idle_since_is_when_the_work_ended, a_stream_waits_for_another_streams_point_and_for_no_more,
                            time_in_waits_counts_once_work_stands_behind_them,
                            a_stream_may_be_waited_for_and_be_destroyed_first,
                            a_ring_of_waits_over_many_streams_keeps_every_order);

}  // namespace forebay::conformance
