#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/device/device.hpp>
#include <forebay/memory/host_arena.hpp>

namespace forebay::conformance {

/// What every device must do, whatever it is made of. A `Traits` type gives:
///   static std::unique_ptr<device> make(byte_count capacity);   // may be null: then the tests are skipped
///   static void hold(device&, stream&, std::atomic<bool>& released);
///       // later work of the stream does not start before `released` is true
///   static std::string why_skipped();
///   static void done();                                         // after the device's end
template <typename Traits>
class conformance_test : public ::testing::Test {
 protected:
  static constexpr byte_count capacity = 8_MiB + 4_KiB;

  void SetUp() override {
    device_ = Traits::make(capacity);
    if (!device_) {
      GTEST_SKIP() << Traits::why_skipped();
    }
    EXPECT_EQ(device_->pin(host_.memory()).pinned_bytes, host_.size());
  }
  void TearDown() override {
    if (device_) {
      device_->unpin(host_.memory());
    }
    device_.reset();
    Traits::done();
  }

  [[nodiscard]] std::unique_ptr<stream> make(stream_kind kind = stream_kind::compute) {
    return device_->make_stream(kind);
  }
  [[nodiscard]] std::byte* at(byte_count offset) { return device_->arena().data() + offset; }

  /// Pinned host memory, all zero or all `value`: copies of other memory may block the caller on some devices.
  [[nodiscard]] std::span<std::byte> host(std::size_t n, std::byte value = std::byte{0}) {
    const auto result = host_.memory().subspan(host_used_, n);
    host_used_ += (n + 63) / 64 * 64;
    std::fill(result.begin(), result.end(), value);
    return result;
  }
  [[nodiscard]] std::span<std::byte> random_host(std::size_t n, std::uint32_t seed) {
    const auto result = host(n);
    const auto values = random_bytes(n, seed);
    std::copy(values.begin(), values.end(), result.begin());
    return result;
  }
  static bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  static std::vector<std::byte> random_bytes(std::size_t n, std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::vector<std::byte> result(n);
    for (std::byte& b : result) {
      b = static_cast<std::byte>(generator() & 0xffU);
    }
    return result;
  }

  host_arena host_{16_MiB};
  std::size_t host_used_ = 0;
  std::unique_ptr<device> device_;
};

}  // namespace forebay::conformance
