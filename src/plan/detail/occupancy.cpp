#include "plan/detail/occupancy.hpp"

#include <algorithm>

namespace forebay::plan::detail {

occupancy::occupancy(const std::vector<byte_count>& base)
    : positions_(static_cast<std::uint32_t>(base.size())), most_(4 * base.size() + 4), added_(4 * base.size() + 4) {
  if (positions_ > 0) {
    build(1, 0, positions_, base);
  }
}

void occupancy::build(std::size_t node, std::uint32_t lo, std::uint32_t hi, const std::vector<byte_count>& base) {
  if (hi - lo == 1) {
    most_[node] = static_cast<std::int64_t>(base[lo]);
    return;
  }
  const std::uint32_t middle = lo + (hi - lo) / 2;
  build(2 * node, lo, middle, base);
  build(2 * node + 1, middle, hi, base);
  most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
}

template <typename Visit>
void occupancy::for_each_part(std::uint32_t first, std::uint32_t last, Visit&& visit) const {
  if (positions_ == 0 || first >= last) {
    return;
  }
  if (last - first >= positions_) {
    visit(0, positions_);
    return;
  }
  const std::uint32_t a = first % positions_;
  const std::uint32_t b = a + (last - first);
  visit(a, std::min(b, positions_));
  if (b > positions_) {
    visit(0, b - positions_);
  }
}

void occupancy::add(std::uint32_t first, std::uint32_t last, byte_count bytes) {
  for_each_part(first, last, [&](std::uint32_t a, std::uint32_t b) {
    change(1, 0, positions_, a, b, static_cast<std::int64_t>(bytes));
  });
}

byte_count occupancy::max(std::uint32_t first, std::uint32_t last) const {
  std::int64_t most = 0;
  for_each_part(first, last,
                [&](std::uint32_t a, std::uint32_t b) { most = std::max(most, query(1, 0, positions_, a, b)); });
  return static_cast<byte_count>(most);
}

std::vector<byte_count> occupancy::bytes() const {
  std::vector<byte_count> all(positions_, 0);
  if (positions_ > 0) {
    list(1, 0, positions_, 0, all);
  }
  return all;
}

void occupancy::list(std::size_t node, std::uint32_t lo, std::uint32_t hi, std::int64_t above,
                     std::vector<byte_count>& all) const {
  if (hi - lo == 1) {
    all[lo] = static_cast<byte_count>(above + most_[node]);
    return;
  }
  const std::uint32_t middle = lo + (hi - lo) / 2;
  list(2 * node, lo, middle, above + added_[node], all);
  list(2 * node + 1, middle, hi, above + added_[node], all);
}

void occupancy::change(std::size_t node, std::uint32_t lo, std::uint32_t hi, std::uint32_t a, std::uint32_t b,
                       std::int64_t by) {
  if (a <= lo && hi <= b) {
    most_[node] += by;
    added_[node] += by;
    return;
  }
  const std::uint32_t middle = lo + (hi - lo) / 2;
  if (a < middle) {
    change(2 * node, lo, middle, a, b, by);
  }
  if (b > middle) {
    change(2 * node + 1, middle, hi, a, b, by);
  }
  most_[node] = added_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

std::int64_t occupancy::query(std::size_t node, std::uint32_t lo, std::uint32_t hi, std::uint32_t a,
                              std::uint32_t b) const {
  if (a <= lo && hi <= b) {
    return most_[node];
  }
  const std::uint32_t middle = lo + (hi - lo) / 2;
  std::int64_t most = 0;
  if (a < middle) {
    most = std::max(most, query(2 * node, lo, middle, a, b));
  }
  if (b > middle) {
    most = std::max(most, query(2 * node + 1, middle, hi, a, b));
  }
  return most + added_[node];
}

}  // namespace forebay::plan::detail
