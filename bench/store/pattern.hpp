#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forebay/base/bytes.hpp>

#include "workload.hpp"

namespace forebay::store_bench {

/// Knows which bytes each tensor must have: every 8 bytes name the tensor, how often it was written and the offset in
/// it, so that bytes of another tensor, another place or an earlier time are never taken for right.
class pattern {
 public:
  pattern(std::span<std::byte> memory, byte_count total, byte_count tensor);

  /// Before a pass: gives what will be written new contents, and makes what will be read wrong.
  void prepare(std::span<const piece> pieces);
  /// After it. \throws corruption_error with tensor and offset when a piece that was read has a wrong byte.
  void check(std::span<const piece> pieces) const;

 private:
  [[nodiscard]] std::uint64_t first_word(byte_count tensor) const;

  std::span<std::byte> memory_;
  byte_count tensor_;
  std::vector<std::uint64_t> written_;  // times, by tensor
};

}  // namespace forebay::store_bench
