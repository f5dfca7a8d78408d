#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::plan::detail {

/// The greatest of a range of values that repeat for ever, in constant time. O(n log n) to make.
class range_maximum {
 public:
  explicit range_maximum(const std::vector<byte_count>& values);

  /// Among those from `from` to `to`, both included: `from` <= `to` < `from` + their number, `from` above minus eight
  /// times it.
  [[nodiscard]] byte_count greatest(std::int64_t from, std::int64_t to) const;
  /// The first and the last in such a range that reach a value, if any. O(log n).
  [[nodiscard]] std::optional<std::int64_t> first_reaching(byte_count value, std::int64_t from, std::int64_t to) const;
  [[nodiscard]] std::optional<std::int64_t> last_reaching(byte_count value, std::int64_t from, std::int64_t to) const;

 private:
  std::int64_t size_;
  std::vector<std::vector<byte_count>> of_power_;  ///< [j][i]: among the 2^j values from i on
};

}  // namespace forebay::plan::detail
