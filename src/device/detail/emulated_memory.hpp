#pragma once

#include <cstddef>
#include <span>

#include <forebay/base/bytes.hpp>

namespace forebay::detail {

/// The memory of an emulated device: exactly `bytes`, page-aligned (to 2 MiB from that size on, for transparent huge
/// pages), zero, and taken from the machine as it is first touched. Children of fork do not inherit it.
class emulated_memory {
 public:
  /// \throws capacity_error with the size and the errno when the address space can't be had.
  explicit emulated_memory(byte_count bytes);
  ~emulated_memory();
  emulated_memory(const emulated_memory&) = delete;
  emulated_memory& operator=(const emulated_memory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> mapping_;
  std::span<std::byte> bytes_;
};

}  // namespace forebay::detail
