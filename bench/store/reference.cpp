#include "reference.hpp"

#include <algorithm>
#include <vector>

#include "statistics.hpp"

namespace forebay::store_bench {
namespace {

constexpr byte_count blocks[] = {256_KiB, 1_MiB, 4_MiB};
constexpr unsigned depths[] = {1, 4, 16, 64};
constexpr unsigned deepest = 64;
constexpr unsigned trials = 3;
constexpr byte_count most_per_trial = 512_MiB;

}  // namespace

reference::reference(const settings& s, std::span<std::byte> memory)
    : total_(memory.size()),
      read_share_(s.read_share),
      ring_(s.paths, memory, deepest * static_cast<unsigned>(s.paths.size())) {}

cost reference::run(const workload& w, const ring_shape& shape, std::uint64_t seed) {
  workload in_blocks = w;
  in_blocks.tensor = align_up(w.tensor, shape.block);
  const std::vector<piece> pieces = make_pass(in_blocks, shape.block, seed);
  return measure(w.total, [&] { ring_.run(pieces, shape); });
}

cost reference::run(const workload& w, std::uint64_t seed) { return run(w, shape(w.what), seed); }

void reference::tune() {
  for (const bool reads : {false, true}) {  // the blocks are written before anything is measured
    const workload whole{reads ? mode::read : mode::overwrite, total_, 4_MiB, read_share_};
    static_cast<void>(run(whole, {4_MiB, 4}, 0));
  }
  for (const mode m : all_modes) {
    const workload some{m, std::min(total_, most_per_trial), 4_MiB, read_share_};
    std::map<std::pair<byte_count, unsigned>, std::vector<double>> rates;
    for (unsigned trial = 0; trial < trials; ++trial) {
      for (const byte_count block : blocks) {
        for (const unsigned depth : depths) {
          rates[{block, depth}].push_back(run(some, {block, depth}, trial).gigabytes_per_second());
        }
      }
    }
    const auto fastest = std::max_element(
        rates.begin(), rates.end(), [](const auto& a, const auto& b) { return median(a.second) < median(b.second); });
    best_[m] = {fastest->first.first, fastest->first.second};
  }
}

}  // namespace forebay::store_bench
