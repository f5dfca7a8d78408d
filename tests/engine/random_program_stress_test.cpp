// Random orders of steps over random tensors, run through the engine and, step for step, on plain vectors: every value
// that any step sees, and everything left at the end, must be the same.
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/testing/delayed_device.hpp>

#include "scratch_directory.hpp"

namespace forebay {
namespace {

using words = std::vector<std::uint8_t>;

std::uint64_t hash_of(std::span<const std::uint8_t> data, std::uint64_t seed) {
  for (const std::uint8_t byte : data) {
    seed = (seed ^ byte) * 0x100000001b3ULL;
  }
  return seed;
}

void fill(std::span<std::uint8_t> data, std::uint64_t seed) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    data[i] = static_cast<std::uint8_t>(seed >> 56U);
  }
}

// The same arithmetic for both runs. `views` are the step's tensors in access order.
std::uint64_t compute(const std::vector<access>& accesses, const std::vector<std::span<std::uint8_t>>& views,
                      std::uint64_t seed) {
  std::uint64_t h = seed;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    if (needs_contents(accesses[i].how)) {
      h = hash_of(views[i], h);
    }
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    if (has(accesses[i].how, uses::create)) {
      fill(views[i], h + i);
    } else if (has(accesses[i].how, uses::write)) {
      for (std::size_t k = 0; k < views[i].size(); k += 7) {
        views[i][k] = static_cast<std::uint8_t>(views[i][k] + h + k);
      }
    }
  }
  return h;
}

struct program {
  std::vector<tensor_spec> specs;
  std::vector<order_step> steps;  // tensor ids by index; generation filled in later
};

program make_program(std::mt19937_64& rng) {
  const auto pick = [&](std::uint64_t n) { return rng() % n; };
  program p;
  const std::uint64_t tensors = 3 + pick(14);
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::uint64_t size = pick(4) == 0 ? 1 + pick(300) : 1 + pick(200'000);
    p.specs.push_back({"t" + std::to_string(i), dtype::u8, {size}, pick(3) == 0 ? role::activation : role::buffer});
  }
  const std::uint64_t steps = 3 + pick(20);
  std::vector<bool> live(tensors);  // activations: created and not freed yet, in order
  for (std::uint64_t s = 0; s < steps; ++s) {
    order_step step;
    step.name = "s" + std::to_string(s);
    step.options.where = pick(4) == 0 ? place::host : place::device;
    step.options.workspace = pick(2) == 0 ? 0 : pick(100'000);
    const std::uint64_t count = 1 + pick(5);
    for (std::uint64_t a = 0; a < count; ++a) {
      const auto t = static_cast<std::uint32_t>(pick(tensors));
      bool taken = false;
      for (const access& other : step.accesses) {
        taken = taken || other.tensor.index == t;
      }
      if (taken) {
        continue;
      }
      uses how = std::array{uses::read, uses::write, uses::create, uses::read | uses::write}[pick(4)];
      if (p.specs[t].role == role::activation) {
        if (!live[t]) {
          how = uses::create;
        }
        live[t] = true;
        if (pick(3) == 0 && s != 0) {
          how = how | uses::free;
          live[t] = false;
        }
      }
      step.accesses.push_back({{t, 0}, how});
    }
    p.steps.push_back(std::move(step));
  }
  return p;
}

struct tiers {
  bool storage = true;
  std::size_t paths = 1;
  double slack = 0.0;  // of the way from the smallest capacity to everything
  bool delayed = false;
  bool prefetch = true;
  bool planned = false;  // a schedule is followed as soon as durations are known
  bool shuffle = false;  // steps run in another order than declared, some not at all
  io::backend_kind io = io::backend_kind::automatic;
};

class engine_under_test {
 public:
  engine_under_test(const program& p, const tiers& t, std::uint64_t seed) {
    tier_bytes least;
    {
      engine probe(options(t, seed, {64_MiB, 64_MiB, 0}));
      least = probe.minimum_capacity(declare(probe, p));
    }
    byte_count all = 0;
    for (const tensor_spec& s : p.specs) {
      all += align_up(s.bytes(), 4_KiB);
    }
    const auto between = [&](byte_count low) {
      return align_down(low + static_cast<byte_count>(t.slack * static_cast<double>(all)), 4_KiB);
    };
    capacities_ = {between(std::max(least.device, 4_KiB)), between(std::max(least.host, 4_KiB)), 0};
    engine_ = std::make_unique<engine>(options(t, seed, capacities_));
    order_ = declare(*engine_, p);
    engine_->set_order(order_);
  }

  order declare(engine& e, const program& p) {
    for (const tensor_spec& s : p.specs) {
      e.add(s);
    }
    order o;
    const std::uint32_t generation = e.tensors().front().generation;
    for (const order_step& s : p.steps) {
      std::vector<access> accesses = s.accesses;
      for (access& a : accesses) {
        a.tensor.generation = generation;
      }
      o.step(s.name, accesses, s.options);
    }
    return o;
  }

  engine& get() { return *engine_; }
  const order& steps() const { return order_; }
  tier_bytes capacities() const { return capacities_; }

 private:
  engine_options options(const tiers& t, std::uint64_t seed, tier_bytes capacity) {
    engine_options o;
    o.device = emulated_device({.capacity = capacity.device});
    if (t.delayed) {
      testing::delayed_device_options delays;
      delays.max_h2d_delay = delays.max_d2h_delay = std::chrono::milliseconds(2);
      delays.seed = seed;
      o.device = std::make_unique<testing::delayed_device>(std::move(o.device), delays);
    }
    o.host.capacity = capacity.host;
    o.chunk = 16_KiB;
    o.prefetch = t.prefetch;
    o.planning_effort = 0.05;
    o.planning = t.planned ? planning_policy::always : planning_policy::off;
    o.poison_freed_memory = true;
    o.packed_block_bytes = 64_KiB;
    o.stall_limit = std::chrono::milliseconds(20'000);
    o.io.kind = t.io;
    for (std::size_t i = 0; t.storage && i < t.paths; ++i) {
      o.storage.push_back({.directory = directory_.path() / std::to_string(i)});
    }
    return o;
  }

  testing_support::scratch_directory directory_;
  std::unique_ptr<engine> engine_;
  order order_;
  tier_bytes capacities_;
};

// Counts the iterations that followed a schedule.
void run(std::uint64_t seed, const tiers& t, std::uint64_t& planned) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 rng(seed);
  const program p = make_program(rng);
  engine_under_test under_test(p, t, seed);
  engine& e = under_test.get();
  const std::vector<tensor_id> ids = e.tensors();
  std::vector<words> reference;
  std::vector<bool> defined(p.specs.size());
  for (std::size_t i = 0; i < p.specs.size(); ++i) {
    reference.emplace_back(p.specs[i].bytes());
    if (p.specs[i].role == role::activation) {
      continue;
    }
    if (rng() % 3 != 0) {
      fill(reference[i], seed + i);
      e.write<std::uint8_t>(ids[i], reference[i]);
    } else {
      e.zero(ids[i]);
    }
    defined[i] = true;
  }
  for (std::uint64_t n = 0; n < (t.planned ? 8 : 4); ++n) {
    std::vector<std::uint64_t> seen(p.steps.size());
    std::vector<std::uint64_t> expected(p.steps.size());
    std::vector<std::size_t> sequence(p.steps.size());
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      sequence[i] = i;
    }
    if (t.shuffle && n % 2 == 1) {
      std::shuffle(sequence.begin(), sequence.end(), rng);
      sequence.resize(1 + rng() % sequence.size());
    }
    iteration it = e.begin(n);
    for (const std::size_t s : sequence) {
      const order_step& step = under_test.steps().steps()[s];
      bool readable = true;
      std::vector<std::span<std::uint8_t>> plain;
      for (const access& a : step.accesses) {
        readable = readable && (!needs_contents(a.how) || defined[a.tensor.index]);
        plain.emplace_back(reference[a.tensor.index]);
      }
      const step_id id{static_cast<std::uint32_t>(s), 0};
      const bool on_device = step.options.where == place::device;
      if (!readable) {
        if (on_device) {
          EXPECT_THROW(static_cast<void>(it.acquire(id, e.compute_stream())), usage_error);
        } else {
          EXPECT_THROW(static_cast<void>(it.acquire(id)), usage_error);
        }
        continue;
      }
      expected[s] = compute(step.accesses, plain, n);
      lease l = on_device ? it.acquire(id, e.compute_stream()) : it.acquire(id);
      std::vector<std::span<std::uint8_t>> views;
      for (const access& a : step.accesses) {
        views.push_back(l.data<std::uint8_t>(a.tensor));
      }
      ASSERT_EQ(l.workspace().size(), step.options.workspace);
      const auto work = [&step, views, n, out = &seen[s], scratch = l.workspace()] {
        if (!scratch.empty()) {
          std::memset(scratch.data(), 0x5a, scratch.size());
        }
        *out = compute(step.accesses, views, n);
      };
      if (on_device) {
        e.compute_stream().launch(work);
      } else {
        work();
      }
      for (const access& a : step.accesses) {
        if (has(a.how, uses::create)) {
          defined[a.tensor.index] = true;
        }
        if (has(a.how, uses::free)) {
          defined[a.tensor.index] = false;
        }
      }
      ASSERT_LE(e.used().device, under_test.capacities().device);
      ASSERT_LE(e.used().host, under_test.capacities().host);
    }
    const iteration_report report = it.finish();
    EXPECT_LE(report.peak.device, under_test.capacities().device);
    EXPECT_LE(report.peak.host, under_test.capacities().host);
    EXPECT_EQ(seen, expected);
    planned += report.planned ? 1 : 0;
    for (std::size_t i = 0; i < p.specs.size(); ++i) {
      if (p.specs[i].role == role::activation) {
        defined[i] = false;
      }
    }
  }
  for (std::size_t i = 0; i < p.specs.size(); ++i) {
    if (!defined[i]) {
      continue;
    }
    words contents(reference[i].size());
    e.read<std::uint8_t>(ids[i], contents);
    EXPECT_EQ(contents, reference[i]) << "tensor " << i;
  }
}

void run(std::uint64_t seed, const tiers& t) {
  std::uint64_t planned = 0;
  run(seed, t, planned);
}

// A sanitizer makes each seed ten times as long, and sees in few what a plain run needs many for.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t seeds = 6;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr std::uint64_t seeds = 6;
#else
constexpr std::uint64_t seeds = 30;
#endif
#else
constexpr std::uint64_t seeds = 30;
#endif

TEST(random_program, two_tiers_at_the_smallest_capacities) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.storage = false});
  }
}

TEST(random_program, two_tiers_with_room) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.storage = false, .slack = 0.3});
  }
}

TEST(random_program, three_tiers_at_the_smallest_capacities) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {});
  }
}

TEST(random_program, three_tiers_with_some_room) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.paths = 3, .slack = 0.2});
  }
}

TEST(random_program, everything_resident) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.slack = 2.0});
  }
}

TEST(random_program, on_demand_alone) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.slack = 0.1, .prefetch = false});
  }
}

TEST(random_program, steps_skipped_and_out_of_order) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.slack = 0.1, .shuffle = true});
  }
}

TEST(random_program, delayed_copies) {
  for (std::uint64_t seed = 0; seed < std::min<std::uint64_t>(10, seeds); ++seed) {
    run(seed, {.slack = 0.15, .delayed = true, .shuffle = seed % 2 == 1});
  }
}

// Each seed makes several plans. Most are followed; some orders need no transfer, or have no plan that fits.
constexpr std::uint64_t planned_seeds = 2 + seeds / 3;

std::uint64_t run_planned(const tiers& t) {
  std::uint64_t planned = 0;
  for (std::uint64_t seed = 0; seed < planned_seeds; ++seed) {
    run(seed, t, planned);
  }
  return planned;
}

// There is next to no room for copies in transit: most have no schedule and are served as without planning.
TEST(random_program, planned_at_the_smallest_capacities) { static_cast<void>(run_planned({.planned = true})); }

TEST(random_program, planned_with_some_room) {
  EXPECT_GT(run_planned({.paths = 2, .slack = 0.2, .planned = true}), 0U);
}

TEST(random_program, planned_on_two_tiers) {
  EXPECT_GT(run_planned({.storage = false, .slack = 0.1, .planned = true}), 0U);
}

TEST(random_program, planned_with_delayed_copies) {
  EXPECT_GT(run_planned({.slack = 0.15, .delayed = true, .planned = true}), 0U);
}

TEST(random_program, planned_with_steps_skipped_and_out_of_order) {
  EXPECT_GT(run_planned({.slack = 0.2, .planned = true, .shuffle = true}), 0U);
}

TEST(random_program, threads_for_storage) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    run(seed, {.slack = 0.1, .io = io::backend_kind::threads});
  }
}

}  // namespace
}  // namespace forebay
