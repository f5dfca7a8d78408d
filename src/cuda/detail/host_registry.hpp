#pragma once

#include <cstddef>
#include <map>
#include <shared_mutex>
#include <span>
#include <vector>

#include <forebay/device/device.hpp>

#include "device/detail/pin_table.hpp"

namespace forebay::detail {

/// The host ranges that are registered with the CUDA run-time. Large ranges are registered in parts, since drivers
/// refuse or crawl at very large ones; a copy must not span two parts, or a part and pageable memory. Thread-safe.
class host_registry {
 public:
  host_registry() = default;
  ~host_registry();
  host_registry(const host_registry&) = delete;
  host_registry& operator=(const host_registry&) = delete;

  [[nodiscard]] pin_result pin(std::span<std::byte> memory);
  void unpin(std::span<std::byte> memory) noexcept;

  /// How many of the `bytes` at `start` lie in the same part, or in no part: what one copy may take.
  [[nodiscard]] byte_count uniform_run(const std::byte* start, byte_count bytes) const;

 private:
  void unregister(std::span<std::byte> memory) noexcept;

  mutable std::shared_mutex mutex_;
  pin_table pins_;
  std::map<const std::byte*, std::span<std::byte>> parts_;
};

}  // namespace forebay::detail
