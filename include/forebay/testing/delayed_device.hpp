#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <forebay/base/clock.hpp>
#include <forebay/device/device.hpp>

namespace forebay::testing {

struct delayed_device_options {
  duration max_h2d_delay = std::chrono::milliseconds(20);  ///< each copy starts 0..max later, evenly spread
  duration max_d2h_delay = std::chrono::milliseconds(20);
  duration max_d2d_delay = duration::zero();
  std::uint64_t seed = 1;  ///< of the delays: one sequence per direction, in the order in which copies are enqueued
};

/// Any device, with copies that take long, or wait for the test, or fail. A copy's delay is spent in its stream just
/// before it, so that all that is ordered behind it moves too; streams overtake each other at random. Everything else
/// is the inner device's. Thread-safe.
class delayed_device final : public device {
 public:
  explicit delayed_device(std::unique_ptr<device> inner, const delayed_device_options& options = {});
  ~delayed_device() override;

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::span<std::byte> arena() const noexcept override;
  [[nodiscard]] bool host_addressable() const noexcept override;
  [[nodiscard]] std::unique_ptr<stream> make_stream(stream_kind kind) override;
  void fill(std::byte* to, std::byte pattern, byte_count bytes) override;
  [[nodiscard]] pin_result pin(std::span<std::byte> host_memory) override;
  void unpin(std::span<std::byte> host_memory) noexcept override;

  /// The `n`-th copy from now (1: the next) in that direction fails with a device_error: its stream fails where the
  /// host can address the device's memory, else the enqueueing call throws.
  void fail_copy(copy_direction direction, std::uint64_t n = 1);
  /// From now on copies in that direction start only after `release`. Streams are not to be destroyed meanwhile.
  void hold(copy_direction direction);
  void release(copy_direction direction);
  /// Copies enqueued so far in that direction.
  [[nodiscard]] std::uint64_t copies(copy_direction direction) const;

  struct state;

 private:
  std::unique_ptr<device> inner_;
  std::unique_ptr<state> state_;
};

}  // namespace forebay::testing
