#pragma once

#include <cstdint>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::plan::detail {

/// Bytes by position of a cycle, with range addition and range maximum in O(log positions): a segment tree whose nodes
/// hold what was added to the whole of them.
class occupancy {
 public:
  explicit occupancy(const std::vector<byte_count>& base);

  /// Positions first .. last - 1, modulo the cycle; at most one whole cycle.
  void add(std::uint32_t first, std::uint32_t last, byte_count bytes);
  /// Zero of no positions.
  [[nodiscard]] byte_count max(std::uint32_t first, std::uint32_t last) const;
  /// By position. O(positions).
  [[nodiscard]] std::vector<byte_count> bytes() const;

 private:
  void build(std::size_t node, std::uint32_t lo, std::uint32_t hi, const std::vector<byte_count>& base);
  void list(std::size_t node, std::uint32_t lo, std::uint32_t hi, std::int64_t above,
            std::vector<byte_count>& all) const;
  void change(std::size_t node, std::uint32_t lo, std::uint32_t hi, std::uint32_t a, std::uint32_t b, std::int64_t by);
  [[nodiscard]] std::int64_t query(std::size_t node, std::uint32_t lo, std::uint32_t hi, std::uint32_t a,
                                   std::uint32_t b) const;
  template <typename Visit>
  void for_each_part(std::uint32_t first, std::uint32_t last, Visit&& visit) const;

  std::uint32_t positions_;
  std::vector<std::int64_t> most_;   // of a node's positions, with all added to it
  std::vector<std::int64_t> added_;  // to all of a node's positions
};

}  // namespace forebay::plan::detail
