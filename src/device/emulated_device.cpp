#include <forebay/device/emulated_device.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "device/detail/copy_range.hpp"
#include "device/detail/emulated_memory.hpp"
#include "device/detail/emulated_stream.hpp"
#include "device/detail/pin_table.hpp"

namespace forebay {
namespace {

class emulated final : public device {
 public:
  explicit emulated(const emulated_device_options& options)
      : memory_(options.capacity),
        links_(options.h2d_bytes_per_second, options.d2h_bytes_per_second),
        pin_limit_(options.pin_limit) {}

  [[nodiscard]] std::string name() const override { return "emulated"; }
  [[nodiscard]] std::span<std::byte> arena() const noexcept override { return memory_.bytes(); }
  [[nodiscard]] bool host_addressable() const noexcept override { return true; }

  [[nodiscard]] std::unique_ptr<stream> make_stream(stream_kind kind) override {
    return std::make_unique<detail::emulated_stream>(kind, memory_.bytes(), links_);
  }

  void fill(std::byte* to, std::byte pattern, byte_count bytes) override {
    detail::check_inside(memory_.bytes(), to, bytes, "the range to fill is not inside the device's arena");
    std::memset(to, std::to_integer<int>(pattern), bytes);
  }

  [[nodiscard]] pin_result pin(std::span<std::byte> host_memory) override {
    const std::scoped_lock lock(mutex_);
    pins_.check_new(host_memory);
    const byte_count left = pin_limit_ - pins_.bytes();
    const byte_count pinned = std::min<byte_count>(left, host_memory.size());
    if (pinned > 0) {
      pins_.add(host_memory.first(pinned));
    }
    if (pinned == host_memory.size()) {
      return {pinned, {}};
    }
    return {pinned, detail::pin_refusal(host_memory.size(), pinned,
                                        fmt::format("the device's limit is {} ({} bytes), {} bytes of it were taken",
                                                    format_bytes(pin_limit_), pin_limit_, pin_limit_ - left))};
  }

  void unpin(std::span<std::byte> host_memory) noexcept override {
    const std::scoped_lock lock(mutex_);
    pins_.take(host_memory.data());
  }

 private:
  detail::emulated_memory memory_;
  detail::emulated_links links_;
  const byte_count pin_limit_;
  std::mutex mutex_;
  detail::pin_table pins_;
};

}  // namespace

std::unique_ptr<device> emulated_device(const emulated_device_options& options) {
  FOREBAY_EXPECTS(options.capacity > 0, "an emulated device needs a capacity");
  return std::make_unique<emulated>(options);
}

}  // namespace forebay
