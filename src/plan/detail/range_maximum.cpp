#include "plan/detail/range_maximum.hpp"

#include <algorithm>
#include <bit>

namespace forebay::plan::detail {

range_maximum::range_maximum(const std::vector<byte_count>& values)
    : size_(static_cast<std::int64_t>(values.size())), of_power_{values} {
  for (std::size_t length = 1; 2 * length <= values.size(); length *= 2) {
    std::vector<byte_count> twice(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      twice[i] = std::max(of_power_.back()[i], of_power_.back()[(i + length) % values.size()]);
    }
    of_power_.push_back(std::move(twice));
  }
}

byte_count range_maximum::greatest(std::int64_t from, std::int64_t to) const {
  const auto place = [&](std::int64_t i) { return static_cast<std::size_t>((i + 8 * size_) % size_); };
  const auto power = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(to - from + 1))) - 1;
  return std::max(of_power_[power][place(from)], of_power_[power][place(to + 1 - (std::int64_t{1} << power))]);
}

std::optional<std::int64_t> range_maximum::first_reaching(byte_count value, std::int64_t from, std::int64_t to) const {
  if (from > to || greatest(from, to) < value) {
    return std::nullopt;
  }
  std::int64_t low = from;
  while (low < to) {
    const std::int64_t middle = low + (to - low) / 2;
    (greatest(from, middle) >= value ? to : low) = greatest(from, middle) >= value ? middle : middle + 1;
  }
  return low;
}

std::optional<std::int64_t> range_maximum::last_reaching(byte_count value, std::int64_t from, std::int64_t to) const {
  if (from > to || greatest(from, to) < value) {
    return std::nullopt;
  }
  std::int64_t high = to;
  while (from < high) {
    const std::int64_t middle = high - (high - from) / 2;
    (greatest(middle, to) >= value ? from : high) = greatest(middle, to) >= value ? middle : middle - 1;
  }
  return high;
}

}  // namespace forebay::plan::detail
