#include <benchmark/benchmark.h>

#include <forebay/memory/ledger.hpp>

namespace {

using namespace forebay;

void reserve_and_release(benchmark::State& state) {
  static ledger account("host", 1_GiB);
  for (auto _ : state) {
    benchmark::DoNotOptimize(account.try_reserve(4_KiB));
    account.release(4_KiB);
  }
}
BENCHMARK(reserve_and_release)->ThreadRange(1, 4)->UseRealTime();

void refuse(benchmark::State& state) {
  ledger account("host", 1_KiB);
  for (auto _ : state) {
    benchmark::DoNotOptimize(account.try_reserve(4_KiB));
  }
}
BENCHMARK(refuse);

}  // namespace
