#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/memory/extent_allocator.hpp>

namespace {

using namespace forebay;

// A pair of allocate and free at a steady number of live extents of 1..64 pages, freed in random order.
void allocate_and_free(benchmark::State& state) {
  const auto live = static_cast<std::size_t>(state.range(0));
  extent_allocator allocator(live * 256_KiB, 4_KiB);  // twice the mean need
  std::mt19937 random(1);
  std::vector<extent> extents;
  while (extents.size() < live) {
    if (const auto e = allocator.allocate((1 + random() % 64) * 4_KiB)) {
      extents.push_back(*e);
    }
  }
  std::vector<std::uint32_t> draws(1U << 16U);
  for (std::uint32_t& d : draws) {
    d = static_cast<std::uint32_t>(random());
  }
  std::size_t i = 0;
  for (auto _ : state) {
    extent& chosen = extents[draws[i++ % draws.size()] % live];
    allocator.free(chosen);
    chosen = *allocator.allocate((1 + draws[i++ % draws.size()] % 64) * 4_KiB);
  }
  state.counters["holes"] = static_cast<double>(allocator.hole_count());
}
BENCHMARK(allocate_and_free)->RangeMultiplier(10)->Range(100, 100'000);

}  // namespace
