// Copies through an emulated stream beside plain memcpy between the same kinds of memory in the same run.
#include <cstring>

#include <benchmark/benchmark.h>

#include <forebay/device/emulated_device.hpp>
#include <forebay/memory/host_arena.hpp>

namespace {

using namespace forebay;

constexpr byte_count largest = 64_MiB;

void sizes(benchmark::internal::Benchmark* b) { b->RangeMultiplier(4)->Range(64_KiB, largest)->UseRealTime(); }

void plain_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<byte_count>(state.range(0));
  const host_arena from(largest);
  const host_arena to(largest);
  std::memset(from.memory().data(), 1, from.size());
  std::memset(to.memory().data(), 2, to.size());
  for (auto _ : state) {
    std::memcpy(to.memory().data(), from.memory().data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}
BENCHMARK(plain_memcpy)->Apply(sizes);

void emulated_copy(benchmark::State& state) {
  const auto bytes = static_cast<byte_count>(state.range(0));
  const host_arena host(largest);
  const auto device = emulated_device({.capacity = largest});
  const auto stream = device->make_stream(stream_kind::host_to_device);
  std::memset(host.memory().data(), 1, host.size());
  device->fill(device->arena().data(), std::byte{2}, largest);
  for (auto _ : state) {
    stream->copy(device->arena().data(), host.memory().data(), bytes, copy_direction::host_to_device);
    stream->synchronize();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}
BENCHMARK(emulated_copy)->Apply(sizes);

// Eight copies in flight, as a mover keeps them: what a stream costs when nobody waits for each copy.
void emulated_copies_queued(benchmark::State& state) {
  constexpr int depth = 8;
  const auto bytes = static_cast<byte_count>(state.range(0));
  const host_arena host(largest);
  const auto device = emulated_device({.capacity = largest});
  const auto stream = device->make_stream(stream_kind::host_to_device);
  std::memset(host.memory().data(), 1, host.size());
  device->fill(device->arena().data(), std::byte{2}, largest);
  for (auto _ : state) {
    for (int i = 0; i < depth; ++i) {
      stream->copy(device->arena().data(), host.memory().data(), bytes, copy_direction::host_to_device);
    }
    stream->synchronize();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * depth * state.iterations());
}
BENCHMARK(emulated_copies_queued)->Apply(sizes);

}  // namespace
