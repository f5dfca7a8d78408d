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
class conformance_test : public ::testing::Test {
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

}  // namespace forebay::conformance
