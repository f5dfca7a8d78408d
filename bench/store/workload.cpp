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

}  // namespace

std::vector<piece> make_pass(const workload& w, byte_count granule, std::uint64_t seed) {
  const byte_count unit = std::max(w.tensor, granule);
  const std::vector<std::size_t> order = shuffled(static_cast<std::size_t>(ceil_div(w.total, unit)), seed);
  const double share = w.what == mode::read ? 1.0 : (w.what == mode::overwrite ? 0.0 : w.read_share);
  const auto to_read = static_cast<std::size_t>(std::lround(share * static_cast<double>(order.size())));
  std::vector<piece> reads;
  std::vector<piece> writes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const byte_count begin = order[i] * unit;
    const byte_count end = std::min(begin + unit, w.total);
    for (byte_count at = begin; at < end; at += granule) {
      const piece p{at, std::min(granule, end - at), i < to_read};
      (p.reads ? reads : writes).push_back(p);
    }
  }
  return interleaved(reads, writes);
}

}  // namespace forebay::store_bench
