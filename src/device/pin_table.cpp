#include "device/detail/pin_table.hpp"

#include <iterator>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

namespace forebay::detail {

void pin_table::check_new(std::span<const std::byte> range) const {
  FOREBAY_EXPECTS(!range.empty(), "a range to pin has at least one byte");
  const auto next = ranges_.lower_bound(range.data());
  const bool next_overlaps = next != ranges_.end() && next->first < range.data() + range.size();
  const bool previous_overlaps =
      next != ranges_.begin() && std::prev(next)->first + std::prev(next)->second.size() > range.data();
  FOREBAY_EXPECTS(!next_overlaps && !previous_overlaps, "a range to pin is not pinned already");
}

void pin_table::add(std::span<std::byte> range) {
  ranges_.emplace(range.data(), range);
  bytes_ += range.size();
}

std::span<std::byte> pin_table::take(const std::byte* start) noexcept {
  const auto found = ranges_.find(start);
  if (found == ranges_.end()) {
    return {};
  }
  const std::span<std::byte> range = found->second;
  ranges_.erase(found);
  bytes_ -= range.size();
  return range;
}

std::string pin_refusal(byte_count wanted, byte_count got, const std::string& reason) {
  return fmt::format(
      "page-locked host memory: wanted {} ({} bytes), got {} ({} bytes): {}; the rest stays pageable, its copies are "
      "slower",
      format_bytes(wanted), wanted, format_bytes(got), got, reason);
}

}  // namespace forebay::detail
