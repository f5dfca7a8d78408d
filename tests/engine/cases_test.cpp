// Faults that users of offloading systems have met, each as a small program that would show it here.
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/testing/delayed_device.hpp>
#include <forebay/testing/fault_script.hpp>
#include <forebay/testing/io_faults.hpp>

#include "small_engine.hpp"

namespace forebay {
namespace {

using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

constexpr std::uint64_t block_floats = 4096;
constexpr byte_count block = block_floats * sizeof(float);

engine_options with_delays(engine_options o, std::chrono::milliseconds h2d, std::chrono::milliseconds d2h) {
  testing::delayed_device_options delays;
  delays.max_h2d_delay = h2d;
  delays.max_d2h_delay = d2h;
  o.device = std::make_unique<testing::delayed_device>(std::move(o.device), delays);
  return o;
}

// With the engine's look-ahead alone, and with a schedule wherever there is one.
class planned_cases : public ::testing::TestWithParam<planning_policy> {
 protected:
  [[nodiscard]] static engine_options options(byte_count device, byte_count host, const scratch_directory& directory) {
    engine_options o = small_options(device, host, &directory);
    o.planning = GetParam();
    o.planning_effort = 0.05;
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(planning, planned_cases, ::testing::Values(planning_policy::off, planning_policy::always),
                         [](const auto& p) { return p.param == planning_policy::off ? "off" : "always"; });

// Evict and fetch back at once, with slow copies: the fetch must not read what the eviction has not written yet.
TEST(cases, a_fetch_right_behind_an_eviction_sees_the_evicted_bytes) {
  engine e(with_delays(small_options(block, 8 * block), std::chrono::milliseconds(2), std::chrono::milliseconds(10)));
  const std::array ids{add_floats(e, "a", block_floats), add_floats(e, "b", block_floats)};
  order o;
  o.step("a", {writes(ids[0])});
  o.step("b", {writes(ids[1])});
  e.set_order(o);
  for (const tensor_id t : ids) {
    e.write<float>(t, ramp(block_floats, 0.0F));
  }
  double stall = 0.0;
  for (std::uint64_t n = 0; n < 25; ++n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
      e.compute_stream().launch([data = l.data<float>(ids[i])] {
        for (float& x : data) {
          x += 1.0F;
        }
      });
    }
    stall += it.finish().stall_seconds;
  }
  EXPECT_EQ(contents(e, ids[0]), ramp(block_floats, 25.0F));
  EXPECT_EQ(contents(e, ids[1]), ramp(block_floats, 25.0F));
  EXPECT_GT(stall, 0.0);
}

// The device has one block. While the copy out of it is still under way, its memory is wanted for a tensor full of NaN.
TEST(cases, memory_is_reused_only_when_the_copy_out_of_it_has_ended) {
  engine e(with_delays(small_options(block, 8 * block), std::chrono::milliseconds(1), std::chrono::milliseconds(10)));
  const tensor_id kept = add_floats(e, "kept", block_floats);
  const tensor_id junk = add_floats(e, "junk", block_floats, role::activation);
  order o;
  const step_id use = o.step("use", {writes(kept)});
  const step_id spoil = o.step("spoil", {creates(junk), frees(junk)});
  e.set_order(o);
  e.write<float>(kept, ramp(block_floats, 0.0F));
  for (std::uint64_t n = 0; n < 25; ++n) {
    iteration it = e.begin(n);
    {
      const lease l = it.acquire(use, e.compute_stream());
      e.compute_stream().launch([data = l.data<float>(kept)] { data[block_floats - 1] += 1.0F; });
    }
    {
      const lease l = it.acquire(spoil, e.compute_stream());
      e.compute_stream().launch([data = l.data<float>(junk)] {
        std::fill(data.begin(), data.end(), std::numeric_limits<float>::quiet_NaN());
      });
    }
    it.finish();
  }
  std::vector<float> expected = ramp(block_floats, 0.0F);
  expected.back() += 25.0F;
  EXPECT_EQ(contents(e, kept), expected);
}

// A host step reads a gradient that a device step has only just been enqueued to write.
TEST(cases, a_host_step_sees_the_whole_gradient_however_slow_the_copy) {
  engine e(
      with_delays(small_options(2 * block, 8 * block), std::chrono::milliseconds(1), std::chrono::milliseconds(10)));
  const tensor_id gradient = add_floats(e, "gradient", block_floats, role::gradient);
  order o;
  const step_id backward = o.step("backward", {creates(gradient)});
  const step_id ready = o.step("ready", {reads(gradient), frees(gradient)}, {.where = place::host});
  e.set_order(o);
  for (std::uint32_t n = 0; n < 30; ++n) {
    iteration it = e.begin(n);
    {
      const lease l = it.acquire(backward, e.compute_stream());
      e.compute_stream().launch(
          [data = l.data<float>(gradient), n] { std::iota(data.begin(), data.end(), static_cast<float>(n)); });
    }
    {
      const lease l = it.acquire(ready);
      const std::span<const float> seen = l.data<float>(gradient);
      const std::vector<float> expected = ramp(block_floats, static_cast<float>(n));
      ASSERT_TRUE(std::equal(seen.begin(), seen.end(), expected.begin())) << "round " << n;
    }
    it.finish();
  }
}

// Eight layers stream through two staging chunks, however far ahead the engine looks.
TEST_P(planned_cases, a_small_staging_pool_throttles_and_never_runs_out) {
  const scratch_directory directory;
  engine_options small = options(4 * block, 3 * 64_KiB, directory);
  small.staging_chunks = 2;
  engine e(std::move(small));
  order o;
  for (int i = 0; i < 8; ++i) {
    o.step("s" + std::to_string(i), {writes(add_floats(e, "layer" + std::to_string(i), block_floats))});
  }
  e.set_order(o);
  for (const tensor_id t : e.tensors()) {
    e.write<float>(t, ramp(block_floats, 0.0F));
  }
  for (std::uint64_t n = 0; n < 10; ++n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < 8; ++i) {
      const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
      e.compute_stream().launch([data = l.data<float>(e.tensors()[i])] { data[0] += 1.0F; });
    }
    it.finish();
    EXPECT_LE(e.peak().host, e.capacity().host);
  }
  for (const tensor_id t : e.tensors()) {
    EXPECT_EQ(contents(e, t)[0], 10.0F);
  }
}

// A tensor of many chunks, and one whose size no alignment divides, pass through one staging chunk.
TEST_P(planned_cases, tensors_larger_than_the_staging_chunk_go_through_it_in_pieces) {
  for (const std::uint64_t elements : {std::uint64_t{2} << 20U, std::uint64_t{513'000}}) {
    const scratch_directory directory;
    engine_options one_chunk = options(align_up(elements * 4, 4_KiB), 1_MiB, directory);
    one_chunk.chunk = 1_MiB;
    engine e(std::move(one_chunk));
    const std::array ids{add_floats(e, "a", elements), add_floats(e, "b", elements)};
    order o;
    o.step("a", {writes(ids[0])});
    o.step("b", {writes(ids[1])});
    e.set_order(o);
    for (const tensor_id t : ids) {
      e.write<float>(t, ramp(elements, 1.0F));
    }
    for (std::uint64_t n = 0; n < 3; ++n) {
      iteration it = e.begin(n);
      for (std::uint32_t i = 0; i < 2; ++i) {
        const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
        e.compute_stream().launch([data = l.data<float>(ids[i])] { data.back() += 1.0F; });
      }
      it.finish();
    }
    std::vector<float> expected = ramp(elements, 1.0F);
    for (int n = 0; n < 3; ++n) {
      expected.back() += 1.0F;
    }
    for (const tensor_id t : ids) {
      EXPECT_EQ(contents(e, t), expected);
    }
    EXPECT_LE(e.peak().host, 1_MiB);
  }
}

// A skipped step, an evaluation in another order, and training again.
TEST_P(planned_cases, skipped_steps_and_evaluations_leave_nothing_behind) {
  const scratch_directory directory;
  engine e(options(3 * block, 5 * block + 64_KiB, directory));
  std::array<tensor_id, 3> weights;
  std::array<tensor_id, 3> acts;
  for (std::uint32_t i = 0; i < 3; ++i) {
    weights[i] = add_floats(e, "w" + std::to_string(i), block_floats);
    acts[i] = add_floats(e, "x" + std::to_string(i), block_floats, role::activation);
  }
  order o;
  for (std::uint32_t i = 0; i < 3; ++i) {
    o.step("forward", {reads(weights[i]), creates(acts[i])});
  }
  for (std::uint32_t i = 3; i-- > 0;) {
    o.step("backward", {writes(weights[i]), reads(acts[i]), frees(acts[i])});
  }
  e.set_order(o);
  for (const tensor_id t : weights) {
    e.write<float>(t, ramp(block_floats, 0.0F));
  }
  std::array<float, 3> trained{};
  const auto run = [&](std::uint64_t n, std::initializer_list<std::uint32_t> steps) {
    iteration it = e.begin(n);
    for (const std::uint32_t s : steps) {
      const lease l = it.acquire(step_id{s, 0}, e.compute_stream());
      const std::uint32_t i = s < 3 ? s : 5 - s;
      if (s < 3) {
        e.compute_stream().launch([in = l.data<float>(weights[i]), out = l.data<float>(acts[i])] {
          std::copy(in.begin(), in.end(), out.begin());
        });
      } else {
        e.compute_stream().launch([w = l.data<float>(weights[i]), x = l.data<float>(acts[i])] { w[0] = x[0] + 1.0F; });
        trained[i] += 1.0F;
      }
    }
    it.finish();
    EXPECT_EQ(e.peak().device, std::min(e.peak().device, e.capacity().device));
  };
  run(0, {0, 1, 2, 3, 4, 5});
  run(1, {0, 1, 2, 3, 4, 5});
  run(2, {0, 2, 3, 5});  // the middle layer is skipped
  run(3, {0, 2});        // an evaluation: its activations are never freed by a step
  run(4, {0, 1, 2, 3, 4, 5});
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(contents(e, weights[i])[0], trained[i]);
    EXPECT_THROW(static_cast<void>(contents(e, acts[i])), usage_error) << "an activation outlived its iteration";
  }
}

// Reads that take as long as the steps: from the second iteration on everything is brought while others compute.
TEST_P(planned_cases, what_the_next_steps_need_is_on_its_way_before_they_ask) {
  constexpr std::uint32_t layers = 8;
  constexpr std::chrono::milliseconds each(20);
  const scratch_directory directory;
  testing::io_faults slow(testing::parse_fault_script("delay 20ms read"));
  engine_options o = options(3 * block, 3 * 64_KiB, directory);
  slow.install(o.io);
  engine e(std::move(o));
  order steps;
  for (std::uint32_t i = 0; i < layers; ++i) {
    steps.step("s" + std::to_string(i), {reads(add_floats(e, "layer" + std::to_string(i), block_floats))});
  }
  e.set_order(steps);
  for (const tensor_id t : e.tensors()) {
    e.write<float>(t, ramp(block_floats, 0.0F));
  }
  for (std::uint64_t n = 0; n < 4; ++n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < layers; ++i) {
      {
        const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
        e.compute_stream().launch([each] { std::this_thread::sleep_for(each); });
      }
      e.compute_stream().synchronize();  // callers that run ahead ask sooner than anything could be there
    }
    const iteration_report r = it.finish();
    EXPECT_TRUE(n == 0 || r.misses <= 1) << n << ": " << r.misses;
  }
}

// Page-locked memory runs out long before the host tier does.
TEST(cases, refused_pinning_is_said_and_changes_no_number) {
  const auto make = [](bool required) {
    engine_options o = small_options(block, 4_MiB);
    o.device = emulated_device({.capacity = block, .pin_limit = 1_MiB});
    o.host.require_pinned = required;
    return o;
  };
  EXPECT_THROW(engine(make(true)), error);
  engine e(make(false));
  EXPECT_LE(e.report().pinned_bytes, 1_MiB);
  EXPECT_THAT(e.report().degradations, ::testing::Contains(::testing::HasSubstr("page-locked host memory")));
  const std::array ids{add_floats(e, "a", block_floats), add_floats(e, "b", block_floats)};
  order o;
  o.step("a", {writes(ids[0])});
  o.step("b", {writes(ids[1])});
  e.set_order(o);
  e.write<float>(ids[0], ramp(block_floats, 0.0F));
  e.write<float>(ids[1], ramp(block_floats, 5.0F));
  iteration it = e.begin(0);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
  }
  it.finish();
  EXPECT_EQ(contents(e, ids[0]), ramp(block_floats, 0.0F));
  EXPECT_EQ(contents(e, ids[1]), ramp(block_floats, 5.0F));
}

}  // namespace
}  // namespace forebay
