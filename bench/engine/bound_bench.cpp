// How close an iteration comes to the time that no schedule can beat, on rated links: a transformer-shaped order whose
// steps take prescribed times, so that the links and not the machine's noise decide. The links' rates are measured in
// the same run by plain loops at the same mix; the bound is plan::phase_bound's for those rates.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/memory/host_arena.hpp>
#include <forebay/plan/phase_bound.hpp>

namespace forebay {
namespace {

struct regime {
  const char* name;
  int layers;
  byte_count device;
  byte_count host;
  byte_count link_rate;             // each direction, bytes per second
  byte_count storage_rate;          // each direction, bytes per second
  double forward_seconds;           // per layer; backward takes twice as long
  double update_seconds;            // per layer, on the host
  byte_count activation_bytes = 0;  // per layer; 0: as much as the parameters
};

constexpr byte_count block = 4_MiB;  // of a layer's parameters; as much for its gradient, m and v each
constexpr regime regimes[] = {
    {"compute_bound", 24, 24_MiB, 640_MiB, 512_MiB, 512_MiB, 0.020, 0.002},
    {"storage_bound", 64, 16_MiB, 32_MiB, 2_GiB, 384_MiB, 0.002, 0.001},
    {"host_nearly_enough", 32, 24_MiB, 416_MiB, 1_GiB, 256_MiB, 0.004, 0.002},
    {"h2d_bound", 24, 24_MiB, 640_MiB, 256_MiB, 1_GiB, 0.008, 0.001},
    {"activation_bound", 32, 64_MiB, 128_MiB, 1_GiB, 320_MiB, 0.006, 0.001, 16_MiB},
};

void compute_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

struct layer_tensors {
  tensor_id parameter, gradient, first, second, activation;
};

// The engine, its order, and the same order as the bound sees it (every tensor is a block of its own size).
struct model {
  model(const regime& r, const std::filesystem::path& directory, bool planning)
      : owner([&] {
          engine_options o;
          o.device = emulated_device(
              {.capacity = r.device, .h2d_bytes_per_second = r.link_rate, .d2h_bytes_per_second = r.link_rate});
          o.host.capacity = r.host;
          o.storage.push_back({directory, 0, r.storage_rate, r.storage_rate});
          o.packed_block_bytes = block;
          o.planning = planning ? planning_policy::background : planning_policy::off;
          return o;
        }()) {
    const auto add = [&](const std::string& name, role what) {
      const byte_count bytes = what == role::activation && r.activation_bytes != 0 ? r.activation_bytes : block;
      trace.item_bytes.push_back(bytes);
      return owner.add({name, dtype::u8, {bytes}, what});
    };
    for (int i = 0; i < r.layers; ++i) {
      const std::string n = std::to_string(i);
      tensors.push_back({add("p" + n, role::parameter), add("g" + n, role::gradient),
                         add("m" + n, role::optimizer_state), add("v" + n, role::optimizer_state),
                         add("a" + n, role::activation)});
    }
    for (int i = 0; i < r.layers; ++i) {
      std::vector<access> accesses{reads(tensors[at(i)].parameter), creates(tensors[at(i)].activation)};
      if (i > 0) {
        accesses.push_back(reads(tensors[at(i - 1)].activation));
      }
      step("forward", place::device, r.forward_seconds, accesses);
    }
    for (int i = r.layers - 1; i >= 0; --i) {
      const layer_tensors& t = tensors[at(i)];
      step("backward", place::device, 2 * r.forward_seconds,
           {reads(t.parameter), creates(t.gradient), reads(t.activation), frees(t.activation)});
    }
    for (int i = r.layers - 1; i >= 0; --i) {
      const layer_tensors& t = tensors[at(i)];
      step("update", place::host, r.update_seconds,
           {writes(t.parameter), reads(t.gradient), frees(t.gradient), writes(t.first), writes(t.second)});
    }
    owner.set_order(steps);
    for (const layer_tensors& t : tensors) {
      owner.zero(t.parameter);
      owner.zero(t.first);
      owner.zero(t.second);
    }
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void step(const std::string& phase, place where, double seconds, const std::vector<access>& accesses) {
    step_options options;
    options.where = where;
    options.phase = phase;
    steps.step(phase + std::to_string(steps.steps().size()), accesses, options);
    plan::trace_step t;
    t.where = where;
    t.seconds = seconds;
    t.phase = phase;
    for (const access& a : steps.steps().back().accesses) {
      t.accesses.push_back({a.tensor.index, a.how});
    }
    trace.steps.push_back(std::move(t));
  }

  iteration_report iterate(std::uint64_t n) {
    iteration it = owner.begin(n);
    for (std::uint32_t i = 0; i < trace.steps.size(); ++i) {
      const double seconds = trace.steps[i].seconds;
      if (trace.steps[i].where == place::device) {
        const lease l = it.acquire(step_id{i, 0}, owner.compute_stream());
        owner.compute_stream().launch([seconds] { compute_for(seconds); });
      } else {
        const lease l = it.acquire(step_id{i, 0});
        compute_for(seconds);
      }
    }
    return it.finish();
  }

  engine owner;
  order steps;
  std::vector<layer_tensors> tensors;
  plan::trace trace;
};

double seconds_since(time_point start) { return to_seconds(std::chrono::steady_clock::now() - start); }

// Both directions of the device link at once, plain copies.
double measured_link_rate(const regime& r) {
  const auto device = emulated_device(
      {.capacity = 2 * block, .h2d_bytes_per_second = r.link_rate, .d2h_bytes_per_second = r.link_rate});
  std::vector<std::byte> host(2 * block);
  const auto down = device->make_stream(stream_kind::host_to_device);
  const auto up = device->make_stream(stream_kind::device_to_host);
  constexpr int rounds = 24;
  const time_point start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) {
    down->copy(device->arena().data(), host.data(), block, copy_direction::host_to_device);
    up->copy(host.data() + block, device->arena().data() + block, block, copy_direction::device_to_host);
  }
  down->synchronize();
  up->synchronize();
  return static_cast<double>(rounds * block) / seconds_since(start);
}

struct waited_transfer : page_transfer {
  std::promise<void> done;
  void run(page_store& into, io::operation_kind what, page_id p, std::uint64_t c, std::byte* at) {
    kind = what;
    page = p;
    chunk = c;
    memory = at;
    owner = this;
    complete = [](page_transfer& self, std::exception_ptr) noexcept {
      static_cast<waited_transfer&>(self).done.set_value();
    };
    into.submit(*this);
  }
};

// Reads and writes of the storage path at once, chunk by chunk, everything in flight.
double measured_storage_rate(const regime& r, const std::filesystem::path& directory) {
  page_store_options o;
  o.paths.push_back({directory, 0, r.storage_rate, r.storage_rate});
  page_store store(o);
  const byte_count bytes = 4 * block;
  store.reserve(2 * bytes);
  const page_id from = store.allocate(bytes, "from");
  const page_id to = store.allocate(bytes, "to");
  host_arena memory(2 * bytes);
  const std::uint64_t chunks = store.chunk_count(from);
  const auto move_all = [&](bool both) {
    std::vector<waited_transfer> transfers(2 * chunks);
    for (std::uint64_t c = 0; c < chunks; ++c) {
      std::byte* at = memory.memory().data() + c * store.chunk_bytes();
      transfers[2 * c].run(store, both ? io::operation_kind::read : io::operation_kind::write, from, c, at);
      transfers[2 * c + 1].run(store, io::operation_kind::write, to, c, at + bytes);
    }
    for (waited_transfer& t : transfers) {
      t.done.get_future().wait();
    }
  };
  move_all(false);
  const time_point start = std::chrono::steady_clock::now();
  constexpr int rounds = 3;
  for (int i = 0; i < rounds; ++i) {
    move_all(true);
  }
  return static_cast<double>(rounds * bytes) / seconds_since(start);
}

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
  state.SetLabel(std::string(r.name) + (state.range(1) != 0 ? ", planned" : ", look-ahead"));
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("forebay-bound-bench-" + std::to_string(getpid()));
  plan::machine machine;
  machine.device_capacity = r.device;
  machine.h2d_rate = machine.d2h_rate = measured_link_rate(r);
  const double storage = measured_storage_rate(r, directory / "loop");
  machine.storage = {{storage, storage}};
  const bool planning = state.range(1) != 0;
  model m(r, directory / "engine", planning);
  machine.host_capacity = r.host - std::min<byte_count>(8_MiB, r.host / 8);
  const plan::phase_bound bound(m.trace, machine);
  const double least = bound.evaluate(machine).seconds;
  std::uint64_t n = 0;
  // Cold start, the first measurements, and where one is made, the first iterations with a schedule.
  constexpr std::uint64_t settle = 4;
  constexpr std::uint64_t patience = 12;
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
    ->ArgsProduct({benchmark::CreateDenseRange(0, 4, 1), {0, 1}})
    ->Iterations(8)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace forebay
