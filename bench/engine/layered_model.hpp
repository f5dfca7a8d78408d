#pragma once

// A transformer-shaped order on rated links, whose steps take prescribed times: the links and not the machine's noise
// decide how long an iteration takes.

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::bench {

struct regime {
  const char* name;
  int layers;
  byte_count device;
  byte_count host;
  byte_count link_rate;     // each direction, bytes per second
  byte_count storage_rate;  // each direction, bytes per second
  double forward_seconds;   // per layer; backward takes twice as long
  double update_seconds;    // per layer, on the host
  int activations = 1;      // per layer, of a block each
};

inline constexpr byte_count block = 4_MiB;  // of a layer's parameters; as much for its gradient, m and v each

inline void compute_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

struct layer_tensors {
  tensor_id parameter, gradient, first, second;
  std::vector<tensor_id> activations;
};

enum class who_plans { nobody, search, fixed_rule };

// The engine, its order, and the same order as the bound sees it (every tensor is a block of its own size).
struct model {
  // `limits`: holds the storage path's results back in place of its own pacing; not owned.
  model(const regime& r, const std::filesystem::path& directory, who_plans planner, io::interceptor* limits = nullptr)
      : owner([&] {
          engine_options o;
          o.device = emulated_device(
              {.capacity = r.device, .h2d_bytes_per_second = r.link_rate, .d2h_bytes_per_second = r.link_rate});
          o.host.capacity = r.host;
          const byte_count pace = limits == nullptr ? r.storage_rate : 0;
          o.storage.push_back({directory, 0, pace, pace});
          o.io.faults = limits;
          o.packed_block_bytes = block;
          o.planning = planner == who_plans::nobody ? planning_policy::off : planning_policy::background;
          o.planner = planner == who_plans::fixed_rule ? planner_kind::look_ahead : planner_kind::search;
          return o;
        }()) {
    for (int i = 0; i < r.layers; ++i) {
      add_layer(std::to_string(i), r.activations);
    }
    for (int i = 0; i < r.layers; ++i) {
      std::vector<access> accesses{reads(tensors[at(i)].parameter)};
      for (const tensor_id a : tensors[at(i)].activations) {
        accesses.push_back(creates(a));
      }
      if (i > 0) {
        accesses.push_back(reads(tensors[at(i - 1)].activations.front()));
      }
      step("forward", place::device, r.forward_seconds, accesses);
    }
    for (int i = r.layers - 1; i >= 0; --i) {
      const layer_tensors& t = tensors[at(i)];
      std::vector<access> accesses{reads(t.parameter), creates(t.gradient)};
      for (const tensor_id a : t.activations) {
        accesses.insert(accesses.end(), {reads(a), frees(a)});
      }
      step("backward", place::device, 2 * r.forward_seconds, accesses);
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

  void add_layer(const std::string& n, int activations) {
    const auto add = [&](const std::string& name, role what) {
      trace.item_bytes.push_back(block);
      return owner.add({name, dtype::u8, {block}, what});
    };
    layer_tensors t{add("p" + n, role::parameter),
                    add("g" + n, role::gradient),
                    add("m" + n, role::optimizer_state),
                    add("v" + n, role::optimizer_state),
                    {}};
    for (int i = 0; i < activations; ++i) {
      t.activations.push_back(add("a" + n + "." + std::to_string(i), role::activation));
    }
    tensors.push_back(std::move(t));
  }

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

}  // namespace forebay::bench
