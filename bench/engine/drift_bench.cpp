// A drive that slows down in mid-run: how soon it is noticed and planned for again, and how close iterations come to
// the bound for the new rates afterwards.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/plan/bound.hpp>
#include <forebay/testing/rate_limited.hpp>

#include "layered_model.hpp"

namespace forebay::bench {
namespace {

constexpr regime drifting{"storage_bound", 64, 32_MiB, 640_MiB, 2_GiB, 384_MiB, 0.002, 0.001};
constexpr byte_count slower = 192_MiB;
// Seldom more than ten: the first iterations start from an unknown machine.
constexpr std::uint64_t patience = 20;

double bound_at(const model& m, byte_count storage_rate) {
  plan::machine machine;
  machine.device_capacity = drifting.device;
  machine.host_capacity = drifting.host - std::min<byte_count>(8_MiB, drifting.host / 8);
  machine.h2d_rate = machine.d2h_rate = static_cast<double>(drifting.link_rate);
  machine.storage = {{static_cast<double>(storage_rate), static_cast<double>(storage_rate)}};
  plan::bound_search_options search;
  search.execution.single_caller = search.execution.iterations_join = true;
  return plan::find_bound(m.trace, machine, search).seconds;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void a_drive_that_slows_down(benchmark::State& state) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("forebay-drift-bench-" + std::to_string(getpid()));
  for (auto _ : state) {
    testing::rate_limited limits({{drifting.storage_rate, drifting.storage_rate, 0}});
    model m(drifting, directory, who_plans::search, &limits);
    std::uint64_t n = 0;
    for (std::uint64_t planned = 0; n < patience && planned < 3; ++n) {
      planned += m.iterate(n).planned ? 1 : 0;
    }
    const auto median_of = [&](int iterations) {
      std::vector<double> seconds;
      for (int i = 0; i < iterations; ++i) {
        seconds.push_back(m.iterate(n++).seconds);
      }
      return median(std::move(seconds));
    };
    state.counters["before_over_bound"] = median_of(5) / bound_at(m, drifting.storage_rate);
    const std::uint64_t made = m.owner.analyse().schedules_made;
    limits.change(0, {slower, slower, 0});
    std::uint64_t noticed = 0;
    while (noticed < patience && m.owner.analyse().schedules_made == made) {
      static_cast<void>(m.iterate(n++));
      ++noticed;
    }
    state.counters["replanned_after"] = static_cast<double>(noticed);
    static_cast<void>(median_of(3));
    const double after = median_of(7);
    state.counters["after_over_bound"] = after / bound_at(m, slower);
    state.counters["adopted"] = static_cast<double>(m.owner.analyse().schedules_adopted);
    state.SetIterationTime(after);
  }
  std::filesystem::remove_all(directory);
}
BENCHMARK(a_drive_that_slows_down)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace forebay::bench
