// What ordering costs: the calls that an acquire and a release make on an emulated stream.
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/device/emulated_device.hpp>

namespace {

using namespace forebay;

void record_and_ask(benchmark::State& state) {
  const auto device = emulated_device({.capacity = 4_KiB});
  const auto stream = device->make_stream(stream_kind::compute);
  stream->launch([] {});
  stream->synchronize();
  for (auto _ : state) {
    benchmark::DoNotOptimize(stream->passed(stream->record()));
  }
}
BENCHMARK(record_and_ask);

void wait_for_a_passed_point(benchmark::State& state) {
  const auto device = emulated_device({.capacity = 4_KiB});
  const auto stream = device->make_stream(stream_kind::compute);
  const auto other = device->make_stream(stream_kind::host_to_device);
  other->launch([] {});
  other->synchronize();
  const stream_point point = other->record();
  for (auto _ : state) {
    stream->wait(*other, point);
  }
}
BENCHMARK(wait_for_a_passed_point);

void launch_on_a_busy_stream(benchmark::State& state) {
  constexpr int batch = 1000;
  const auto device = emulated_device({.capacity = 4_KiB});
  const auto stream = device->make_stream(stream_kind::compute);
  for (auto _ : state) {
    for (int i = 0; i < batch; ++i) {
      stream->launch([] {});
    }
    stream->synchronize();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(launch_on_a_busy_stream)->UseRealTime();

// To an idle stream and back: two wake-ups of a thread.
void launch_and_synchronize(benchmark::State& state) {
  const auto device = emulated_device({.capacity = 4_KiB});
  const auto stream = device->make_stream(stream_kind::compute);
  for (auto _ : state) {
    stream->launch([] {});
    stream->synchronize();
  }
}
BENCHMARK(launch_and_synchronize)->UseRealTime();

// A busy rated link keeps its rate: the counter is the achieved share of it.
void rated_link(benchmark::State& state) {
  constexpr byte_count rate = 2_GiB;
  constexpr int depth = 64;
  const auto bytes = static_cast<byte_count>(state.range(0));
  const std::vector<std::byte> host(bytes);
  const auto device = emulated_device({.capacity = bytes, .h2d_bytes_per_second = rate});
  const auto stream = device->make_stream(stream_kind::host_to_device);
  device->fill(device->arena().data(), std::byte{1}, bytes);
  double seconds = 0;
  for (auto _ : state) {
    const time_point start = std::chrono::steady_clock::now();
    for (int i = 0; i < depth; ++i) {
      stream->copy(device->arena().data(), host.data(), bytes, copy_direction::host_to_device);
    }
    stream->synchronize();
    seconds += to_seconds(std::chrono::steady_clock::now() - start);
  }
  const double moved = static_cast<double>(bytes) * depth * static_cast<double>(state.iterations());
  state.counters["share_of_rate"] = moved / seconds / static_cast<double>(rate);
}
BENCHMARK(rated_link)->Arg(64_KiB)->Arg(1_MiB)->Arg(4_MiB)->UseRealTime();

}  // namespace
