#include <forebay/plan/simulate.hpp>

#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/phase_bound.hpp>

#include "random_trace.hpp"

namespace forebay::plan {
namespace {

constexpr uses r = uses::read;
constexpr uses w = uses::write;
constexpr uses c = uses::create;
constexpr uses f = uses::free;

trace_step on_device(double seconds, std::vector<item_access> accesses, std::string phase = "") {
  return {place::device, seconds, 0, std::move(phase), std::move(accesses)};
}
trace_step on_host(double seconds, std::vector<item_access> accesses, std::string phase = "") {
  return {place::host, seconds, 0, std::move(phase), std::move(accesses)};
}

TEST(Simulate, WithEverythingResidentItIsTheSumOfTheSteps) {
  const trace t{{3, 4}, {on_device(2, {{0, r | w}}), on_device(5, {{1, r}}), on_device(1, {})}};
  const machine m{.device_capacity = 7, .host_capacity = 7, .h2d_rate = 1, .storage = {{1, 1}}};
  const simulation s = simulate(t, m);
  EXPECT_TRUE(s.complete);
  EXPECT_DOUBLE_EQ(s.seconds, 8);
  EXPECT_DOUBLE_EQ(s.stall_seconds, 0);
  EXPECT_EQ(s.misses, 0U);
  EXPECT_EQ(s.moved, link_volume{});
}

TEST(Simulate, TheFirstIterationBringsEverything) {
  const trace t{{4}, {on_device(2, {{0, r}})}};
  const machine m{.device_capacity = 4, .host_capacity = 0, .h2d_rate = 1, .storage = {{2, 1}}};
  const auto all = simulate_each(t, m, {.iterations = 2});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_DOUBLE_EQ(all[0].seconds, 4 / 2.0 + 4 / 1.0 + 2);  // read, then copied, then computed with
  EXPECT_DOUBLE_EQ(all[0].stall_seconds, 6);
  EXPECT_EQ(all[0].moved, (link_volume{.h2d = 4, .storage_read = 4}));
  EXPECT_DOUBLE_EQ(all[1].seconds, 2);
}

TEST(Simulate, NothingOverlapsWhereOneItemFits) {
  const trace t{{4, 4}, {on_device(1, {{0, r}}), on_device(2, {{1, r}})}};
  const machine two{.device_capacity = 4, .host_capacity = 8, .h2d_rate = 2};
  const simulation s = simulate(t, two);
  EXPECT_DOUBLE_EQ(s.seconds, 1 + 2 + 2 * 2);
  EXPECT_DOUBLE_EQ(s.stall_seconds, 4);
  EXPECT_EQ(s.moved, (link_volume{.h2d = 8}));
  const machine three{.device_capacity = 4, .host_capacity = 0, .h2d_rate = 2, .storage = {{1, 1}, {1, 1}}};
  EXPECT_DOUBLE_EQ(simulate(t, three).seconds, 1 + 2 + 2 * (2 + 2));  // striped: 4 bytes from two paths in 2 seconds
}

TEST(Simulate, TransfersHideBehindLongSteps) {
  trace t{{4, 4, 4}, {}};
  for (item_index i = 0; i < 3; ++i) {
    t.steps.push_back(on_device(10, {{i, r}}));
  }
  const machine m{.device_capacity = 8, .host_capacity = 12, .h2d_rate = 1};
  const simulation s = simulate(t, m);
  EXPECT_DOUBLE_EQ(s.seconds, 30);
  EXPECT_DOUBLE_EQ(s.stall_seconds, 0);
  EXPECT_GT(s.moved.h2d, 0U);
  // On demand a fetch starts when its step is asked for, which is before the steps in front of it have ended, but not
  // before one of them gives up its room.
  const simulation demand = simulate(t, m, {.prefetch = false});
  EXPECT_GT(demand.misses, 0U);
  EXPECT_GT(demand.stall_seconds, 0.0);
  EXPECT_LE(demand.stall_seconds, static_cast<double>(demand.moved.h2d));
  EXPECT_DOUBLE_EQ(demand.seconds, 30 + demand.stall_seconds);
}

TEST(Simulate, ActivationsGoDownAndComeBack) {
  constexpr std::uint32_t n = 6;
  trace t;
  t.item_bytes.assign(n, 2);
  for (std::uint32_t i = 0; i < n; ++i) {
    t.steps.push_back(on_device(1, {{i, c}}));
  }
  for (std::uint32_t i = n; i-- > 0;) {
    t.steps.push_back(on_device(1, {{i, r | f}}));
  }
  const machine m{.device_capacity = 8, .host_capacity = 12, .h2d_rate = 2, .d2h_rate = 2};
  const simulation s = simulate(t, m);
  EXPECT_EQ(s.moved.d2h, s.moved.h2d);
  EXPECT_GE(s.moved.d2h, 4U);  // six made, four fit
  EXPECT_GE(s.seconds, 12);
  machine roomy = m;
  roomy.device_capacity = 12;
  EXPECT_EQ(simulate(t, roomy).moved, link_volume{});
  EXPECT_DOUBLE_EQ(simulate(t, roomy).seconds, 12);
}

TEST(Simulate, HostStepsBlockTheThreadButNotTheQueuedDeviceSteps) {
  const trace t{{1, 1}, {on_device(10, {{0, r}}, "backward"), on_host(7, {{1, r}}, "update")}};
  const machine m{.device_capacity = 2, .host_capacity = 2};
  EXPECT_DOUBLE_EQ(simulate(t, m).seconds, 10);
  EXPECT_DOUBLE_EQ(simulate(t, m, {.joining_phases = {"update"}}).seconds, 17);
}

TEST(Simulate, AHostStepWaitsForWhatTheDeviceMakes) {
  const trace t{{4}, {on_device(3, {{0, w}}), on_host(5, {{0, w}})}};
  const machine m{.device_capacity = 4, .host_capacity = 4, .h2d_rate = 4, .d2h_rate = 2};
  const simulation s = simulate(t, m);
  EXPECT_DOUBLE_EQ(s.seconds, 3 + 4 / 2.0 + 5 + 4 / 4.0);
  EXPECT_EQ(s.moved, (link_volume{.h2d = 4, .d2h = 4}));
}

TEST(Simulate, SaysWhenAStepDoesNotFit) {
  const trace t{{4, 4}, {on_device(1, {{0, r}, {1, r}})}};
  const machine m{.device_capacity = 7, .host_capacity = 8};
  const simulation s = simulate(t, m);
  EXPECT_FALSE(s.complete);
  EXPECT_EQ(s.seconds, 0.0);
  EXPECT_FALSE(simulate({}, m).complete);
}

TEST(Simulate, RefusesWhatIsNotValid) {
  const trace t{{4}, {on_device(1, {{1, r}})}};
  EXPECT_THROW((void)simulate(t, {.device_capacity = 4}), usage_error);
  EXPECT_THROW((void)simulate({}, {.h2d_rate = 0}), usage_error);
}

struct random_case {
  trace order;
  machine hardware;
  simulation_options run;
  bound_options claims;

  explicit random_case(unsigned seed) {
    std::mt19937 random(seed);
    order = test::random_trace(random, {.steps = 4 + test::below(random, 12),
                                        .persistent = 2 + test::below(random, 8),
                                        .transient = test::below(random, 6),
                                        .host_steps = test::below(random, 3) != 0,
                                        .workspaces = test::below(random, 2) == 0});
    hardware = test::random_machine(random, order, test::below(random, 3) != 0);
    run.iterations = 24;
    run.prefetch = test::below(random, 5) != 0;
    run.iterations_join = test::below(random, 2) == 0;
    if (test::below(random, 2) == 0) {
      run.joining_phases = {"update"};
    }
    claims.iterations_join = run.iterations_join;
    claims.joining_phases = run.joining_phases;
    claims.extra_cuts = test::below(random, 2) * 5;
  }
};

bool same(const simulation& a, const simulation& b) {
  return a.seconds == b.seconds && a.moved == b.moved && a.stall_seconds == b.stall_seconds && a.misses == b.misses;
}

// Whatever just fits runs to its end, at any capacities; and once the iterations repeat, which is what the bound is
// about, they take at least the bound and move at least what is required.
TEST(Simulate, RandomOrdersCompleteAndNeverBeatTheBound) {
  int repeating = 0;
  int tight = 0;
  for (unsigned seed = 0; seed < 1200; ++seed) {
    const random_case k(seed);
    const std::vector<simulation> all = simulate_each(k.order, k.hardware, k.run);
    ASSERT_TRUE(all.back().complete) << seed;
    const bool repeats =
        std::all_of(all.end() - 6, all.end(), [&](const simulation& s) { return same(s, all.back()); });
    if (!repeats) {
      continue;
    }
    ++repeating;
    const simulation& s = all.back();
    const phase_bound bound(k.order, k.hardware, k.claims);
    const double least = bound.evaluate(k.hardware).seconds;
    EXPECT_GE(s.seconds, least * (1 - 1e-9)) << seed;
    tight += s.seconds <= least * 1.001 ? 1 : 0;
    const link_volume required = bound.required_bytes();
    EXPECT_GE(s.moved.h2d, required.h2d) << seed;
    EXPECT_GE(s.moved.d2h, required.d2h) << seed;
    EXPECT_GE(s.moved.storage_read, required.storage_read) << seed;
    EXPECT_GE(s.moved.storage_written, required.storage_written) << seed;
    double steps = 0.0;
    for (const trace_step& step : k.order.steps) {
      steps += step.seconds;
    }
    EXPECT_LE(s.seconds, steps + s.stall_seconds + 1e-9) << seed;
  }
  EXPECT_GT(repeating, 600);
  EXPECT_GT(tight, 100);
}

TEST(Simulate, IsDeterministic) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const random_case k(seed);
    const auto first = simulate_each(k.order, k.hardware, k.run);
    const auto second = simulate_each(k.order, k.hardware, k.run);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin(), second.end(), same)) << seed;
  }
}

}  // namespace
}  // namespace forebay::plan
