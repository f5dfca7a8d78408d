#pragma once

#include <atomic>

#include "conformance_fixture.hpp"

namespace forebay::conformance {

/// What a device does with failure, where a test can make it fail: `Traits::break_stream(stream&)` makes the stream
/// fail once it comes to it.
template <typename Traits>
class device_failures : public conformance_test<Traits> {};

TYPED_TEST_SUITE_P(device_failures);

TYPED_TEST_P(device_failures, a_failed_stream_goes_on_passing_points_and_calling_back) {
  const auto host = this->host(16, std::byte{1});
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

REGISTER_TYPED_TEST_SUITE_P(device_failures, a_failed_stream_goes_on_passing_points_and_calling_back);

}  // namespace forebay::conformance
