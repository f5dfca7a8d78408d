#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include <forebay/base/bytes.hpp>

namespace forebay::detail {

/// Which host ranges are pinned. Not thread-safe.
class pin_table {
 public:
  /// \throws usage_error when any of the range is pinned already, or it is empty.
  void check_new(std::span<const std::byte> range) const;
  void add(std::span<std::byte> range);
  /// Takes out the range that starts here; empty when there is none.
  std::span<std::byte> take(const std::byte* start) noexcept;
  [[nodiscard]] byte_count bytes() const noexcept { return bytes_; }

 private:
  std::map<const std::byte*, std::span<std::byte>> ranges_;
  byte_count bytes_ = 0;
};

/// "page-locked host memory: wanted 64 MiB (... bytes), got 16 MiB (... bytes): <reason>; ..."
[[nodiscard]] std::string pin_refusal(byte_count wanted, byte_count got, const std::string& reason);

}  // namespace forebay::detail
