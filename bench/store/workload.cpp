#include "workload.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace forebay::store_bench {
namespace {

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  return order;
}

/// The two lists as one, evenly interleaved.
std::vector<piece> interleaved(const std::vector<piece>& a, const std::vector<piece>& b) {
  std::vector<piece> all;
  all.reserve(a.size() + b.size());
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < a.size() || k < b.size()) {
    const bool from_a = k == b.size() || (i < a.size() && i * b.size() <= k * a.size());
    all.push_back(from_a ? a[i++] : b[k++]);
  }
  return all;
}

/// What is either read or written as a whole: the same bytes at the same offsets for the store and for the reference,
/// whatever their granules. Whole tensors.
byte_count stretch_bytes(const workload& w) {
  constexpr byte_count least = 4_MiB;  // the largest block of the reference
  return ceil_div(least, w.tensor) * w.tensor;
}

std::vector<bool> read_stretches(const workload& w, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(ceil_div(w.total, stretch_bytes(w)));
  const double share = w.what == mode::read ? 1.0 : (w.what == mode::overwrite ? 0.0 : w.read_share);
  const auto to_read = static_cast<std::size_t>(std::lround(share * static_cast<double>(count)));
  std::vector<bool> reads(count, false);
  const std::vector<std::size_t> order = shuffled(count, seed + 1);
  for (std::size_t i = 0; i < to_read; ++i) {
    reads[order[i]] = true;
  }
  return reads;
}

}  // namespace

std::vector<piece> make_pass(const workload& w, byte_count granule, std::uint64_t seed) {
  const std::vector<bool> reads = read_stretches(w, seed);
  const byte_count stretch = stretch_bytes(w);
  const byte_count unit = std::max(w.tensor, granule);
  std::vector<piece> read;
  std::vector<piece> written;
  for (const std::size_t i : shuffled(static_cast<std::size_t>(ceil_div(w.total, unit)), seed)) {
    const byte_count begin = i * unit;
    const byte_count end = std::min(begin + unit, w.total);
    for (byte_count at = begin; at < end; at += granule) {
      const piece p{at, std::min(granule, end - at), reads[static_cast<std::size_t>(at / stretch)]};
      (p.reads ? read : written).push_back(p);
    }
  }
  return interleaved(read, written);
}

}  // namespace forebay::store_bench
