// What a lease costs when everything is resident, beside the bare stream that it stands on.
#include <benchmark/benchmark.h>

#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>

namespace forebay {
namespace {

struct resident_model {
  resident_model(std::int64_t tensors, bool workspace)
      : owner([] {
          engine_options o;
          o.device = emulated_device({.capacity = 64_MiB});
          o.host.capacity = 64_MiB;
          return o;
        }()) {
    std::vector<access> accesses;
    for (std::int64_t i = 0; i < tensors; ++i) {
      const tensor_id t = owner.add({"t" + std::to_string(i), dtype::f32, {64 * 1024}, role::parameter});
      accesses.push_back(i % 4 == 0 ? writes(t) : reads(t));
    }
    order o;
    step_options options;
    options.workspace = workspace ? 64_KiB : 0;
    first = o.step("first", accesses, options);
    second = o.step("second", accesses, options);
    owner.set_order(o);
    for (const tensor_id t : owner.tensors()) {
      owner.zero(t);
    }
  }

  engine owner;
  step_id first;
  step_id second;
};

// An acquire and its release, with the work of the step left out: the engine's own cost per step.
void acquire_release(benchmark::State& state) {
  resident_model model(state.range(0), state.range(1) != 0);
  stream& on = model.owner.compute_stream();
  iteration warm = model.owner.begin(0);
  { const lease l = warm.acquire(model.first, on); }
  { const lease l = warm.acquire(model.second, on); }
  warm.finish();
  iteration it = model.owner.begin(1);
  bool odd = false;
  for (auto _ : state) {
    const lease l = it.acquire(odd ? model.second : model.first, on);
    odd = !odd;
    benchmark::DoNotOptimize(&l);
  }
  it.finish();
}
BENCHMARK(acquire_release)->ArgNames({"tensors", "workspace"})->Args({1, 0})->Args({8, 0})->Args({8, 1})->Args({24, 1});

// The same with an empty piece of work enqueued under each lease, against the bare enqueueing.
void acquire_launch_release(benchmark::State& state) {
  resident_model model(8, true);
  stream& on = model.owner.compute_stream();
  iteration it = model.owner.begin(0);
  for (auto _ : state) {
    const lease l = it.acquire(model.first, on);
    on.launch([] {});
  }
  it.finish();
}
BENCHMARK(acquire_launch_release);

void launch_alone(benchmark::State& state) {
  const auto device = emulated_device({.capacity = 1_MiB});
  const auto on = device->make_stream(stream_kind::compute);
  for (auto _ : state) {
    on->launch([] {});
  }
  on->synchronize();
}
BENCHMARK(launch_alone);

}  // namespace
}  // namespace forebay
