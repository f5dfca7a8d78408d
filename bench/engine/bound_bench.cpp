// How close an iteration comes to the time that no schedule can beat, and to what is predicted, on rated links whose
// rates are measured in the same run by plain loops at the same mix: without schedules, with those of the planner, and
// with those of the fixed look-ahead that other engines use. The bound is the greater of the certified and the
// phase-wise one.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/plan/bound.hpp>
#include <forebay/plan/phase_bound.hpp>

#include "layered_model.hpp"
#include "plain_links.hpp"

namespace forebay::bench {
namespace {

constexpr regime regimes[] = {
    {"compute_bound", 24, 24_MiB, 640_MiB, 512_MiB, 512_MiB, 0.020, 0.002},
    {"storage_bound", 64, 32_MiB, 640_MiB, 2_GiB, 256_MiB, 0.002, 0.001},
    {"storage_only", 64, 16_MiB, 32_MiB, 2_GiB, 384_MiB, 0.002, 0.001},
    {"host_nearly_enough", 32, 24_MiB, 416_MiB, 1_GiB, 256_MiB, 0.004, 0.002},
    {"h2d_bound", 24, 24_MiB, 640_MiB, 256_MiB, 1_GiB, 0.008, 0.001},
    {"activation_bound", 32, 64_MiB, 128_MiB, 1_GiB, 320_MiB, 0.006, 0.001, 4},
};

double largest_ratio(const link_bytes& moved, const plan::link_volume& required) {
  const auto ratio = [](byte_count m, byte_count q) {
    // Links that need carry nothing, or next to nothing, are not what the iteration waits for.
    return q < block ? 1.0 : static_cast<double>(m) / static_cast<double>(q);
  };
  return std::max({ratio(moved.h2d, required.h2d), ratio(moved.d2h, required.d2h),
                   ratio(moved.storage_read, required.storage_read),
                   ratio(moved.storage_written, required.storage_written)});
}

void add(link_bytes& total, const link_bytes& moved) {
  total.h2d += moved.h2d;
  total.d2h += moved.d2h;
  total.storage_read += moved.storage_read;
  total.storage_written += moved.storage_written;
}

link_bytes mean(const link_bytes& total, std::size_t iterations) {
  const byte_count n = iterations;
  return {total.h2d / n, total.d2h / n, total.storage_read / n, total.storage_written / n};
}

void iteration_over_bound(benchmark::State& state) {
  const regime& r = regimes[state.range(0)];
  const auto planner = static_cast<who_plans>(state.range(1));
  constexpr const char* names[] = {", no schedule", ", planned", ", fixed look-ahead"};
  state.SetLabel(r.name + std::string(names[state.range(1)]));
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("forebay-bound-bench-" + std::to_string(getpid()));
  plan::machine machine;
  machine.device_capacity = r.device;
  machine.h2d_rate = machine.d2h_rate = measured_link_rate(r);
  const double storage = measured_storage_rate(r, directory / "loop");
  machine.storage = {{storage, storage}};
  const bool planning = planner != who_plans::nobody;
  model m(r, directory / "engine", planner);
  machine.host_capacity = r.host - std::min<byte_count>(8_MiB, r.host / 8);
  const plan::phase_bound bound(m.trace, machine);
  plan::bound_search_options search;
  search.execution.single_caller = search.execution.iterations_join = true;
  const double least = std::max(bound.evaluate(machine).seconds, plan::find_bound(m.trace, machine, search).seconds);
  std::uint64_t n = 0;
  // Cold start, the first measurements, and where one is made, the first iterations with a schedule.
  constexpr std::uint64_t settle = 4;
  constexpr std::uint64_t patience = 10;
  for (std::uint64_t planned = 0; n < settle || (planning && n < patience && planned < 2); ++n) {
    planned += m.iterate(n).planned ? 1 : 0;
  }
  std::vector<double> seconds;
  iteration_report last;
  link_bytes total;  // what is required holds in the long run: an iteration may bring what the next one then need not
  for (auto _ : state) {
    last = m.iterate(n++);
    add(total, last.moved);
    seconds.push_back(last.seconds);
    state.SetIterationTime(last.seconds);
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  const plan::link_volume required = bound.required_bytes();
  state.counters["bound_s"] = least;
  state.counters["over_bound"] = seconds[seconds.size() / 2] / least;
  state.counters["over_predicted"] = seconds[seconds.size() / 2] / last.predicted_seconds;
  const link_bytes moved = mean(total, seconds.size());
  state.counters["over_required"] = largest_ratio(moved, required);
  state.counters["h2d_MB"] = static_cast<double>(moved.h2d) / 1e6;
  state.counters["h2d_req"] = static_cast<double>(required.h2d) / 1e6;
  state.counters["d2h_MB"] = static_cast<double>(moved.d2h) / 1e6;
  state.counters["d2h_req"] = static_cast<double>(required.d2h) / 1e6;
  state.counters["read_MB"] = static_cast<double>(moved.storage_read) / 1e6;
  state.counters["read_req"] = static_cast<double>(required.storage_read) / 1e6;
  state.counters["write_MB"] = static_cast<double>(moved.storage_written) / 1e6;
  state.counters["write_req"] = static_cast<double>(required.storage_written) / 1e6;
  state.counters["stall_s"] = last.stall_seconds;
  state.counters["predicted_s"] = last.predicted_seconds;
  state.counters["planned"] = last.planned ? 1 : 0;
  std::filesystem::remove_all(directory);
}
BENCHMARK(iteration_over_bound)
    ->ArgsProduct({benchmark::CreateDenseRange(0, 5, 1), {0, 1, 2}})
    ->Iterations(7)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace forebay::bench
