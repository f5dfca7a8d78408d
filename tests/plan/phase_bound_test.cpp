#include <forebay/plan/phase_bound.hpp>

#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

#include "random_trace.hpp"
#include "residency_search.hpp"

namespace forebay::plan {
namespace {

using test::residency_search;
using test::trace_shape;

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

constexpr bound_options nothing_claimed{.single_caller = false, .iterations_join = false};

TEST(PhaseBound, WithRoomForEverythingItIsTheCompute) {
  const trace t{{5, 7}, {on_device(2, {{0, r}}), on_device(3, {{1, r | w}})}};
  const machine m{.device_capacity = 12, .host_capacity = 12, .h2d_rate = 1, .d2h_rate = 1, .storage = {{1, 1}}};
  const phase_bound b(t, m);
  EXPECT_DOUBLE_EQ(b.evaluate(m).seconds, 5);
  EXPECT_EQ(b.required_bytes(), link_volume{});
}

TEST(PhaseBound, TwoItemsOfWhichOneFitsAreBroughtEachTime) {
  const trace t{{4, 4}, {on_device(1, {{0, r}}), on_device(1, {{1, r}})}};
  const machine m{.device_capacity = 4, .host_capacity = 8, .h2d_rate = 2};
  const phase_bound b(t, m);
  EXPECT_EQ(b.required_bytes(), (link_volume{.h2d = 8}));
  EXPECT_DOUBLE_EQ(b.evaluate(m).seconds, 4);
}

// n items in turn through room for k of them: the best policy hits (k - 1) of n - 1 times (each hit item has waited
// while the n - 1 others were used, in the k - 1 places beside the one in use).
TEST(PhaseBound, ACyclicScanMissesAsBeladysFormulaSays) {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    for (std::uint32_t k = 1; k <= n; ++k) {
      constexpr byte_count size = 5040;
      trace t;
      for (std::uint32_t i = 0; i < n; ++i) {
        t.item_bytes.push_back(size);
        t.steps.push_back(on_device(1, {{i, r}}));
      }
      const phase_bound b(t, {.device_capacity = k * size, .host_capacity = n * size});
      EXPECT_EQ(b.required_bytes().h2d, size * n * (n - k) / (n - 1)) << n << " " << k;
      EXPECT_EQ(b.required_bytes().d2h, 0U);
    }
  }
}

/// `layers` activations of one byte: made forward in order, read and freed backward in reverse.
trace forward_and_backward(std::uint32_t layers, double seconds) {
  trace t;
  t.item_bytes.assign(layers, 1);
  for (std::uint32_t i = 0; i < layers; ++i) {
    t.steps.push_back(on_device(seconds, {{i, c}}, "forward"));
  }
  for (std::uint32_t i = layers; i-- > 0;) {
    t.steps.push_back(on_device(seconds, {{i, r | f}}, "backward"));
  }
  return t;
}

// At the turn the device holds k activations, so n - k went down in the forward phase and come up in the backward one.
TEST(PhaseBound, ActivationsAreChargedToEachPhase) {
  constexpr std::uint32_t n = 10;
  for (std::uint32_t k = 1; k <= n; ++k) {
    const trace t = forward_and_backward(n, 0.125);
    const machine m{.device_capacity = k, .host_capacity = n, .h2d_rate = 2, .d2h_rate = 0.5};
    const phase_bound b(t, m);
    EXPECT_EQ(b.required_bytes(), (link_volume{.h2d = n - k, .d2h = n - k}));
    const double down = (n - k) / 0.5;
    const double up = (n - k) / 2.0;
    const bound_result result = b.evaluate(m);
    EXPECT_DOUBLE_EQ(result.seconds, std::max(down, n * 0.125) + std::max(up, n * 0.125)) << k;
    EXPECT_LE(result.whole.seconds, result.seconds);
    if (k < 7) {
      ASSERT_EQ(result.windows.size(), 2U);
      const window_charge& forward = result.windows[result.windows[0].phases == "forward" ? 0 : 1];
      EXPECT_EQ(forward.phases, "forward");
      EXPECT_EQ(forward.binding, resource::d2h);
      EXPECT_EQ(forward.steps, n);
      EXPECT_EQ(forward.bytes.d2h, n - k);
      EXPECT_EQ(forward.bytes.h2d, 0U);
    }
  }
}

// The same through both tiers above storage: what the device and the host can't hold together is written and read back.
TEST(PhaseBound, WhatBothTiersCantHoldGoesToStorage) {
  constexpr std::uint32_t n = 10;
  const trace t = forward_and_backward(n, 0.0);
  const machine m{.device_capacity = 2, .host_capacity = 3, .storage = {{4, 2}, {1, 0.5}}};
  const phase_bound b(t, m);
  EXPECT_EQ(b.required_bytes(), (link_volume{n - 2, n - 2, n - 5, n - 5}));
  EXPECT_DOUBLE_EQ(b.evaluate(m).seconds, (n - 5) / 2.5 + (n - 5) / 5.0);
  const phase_bound two_tiers(t, {.device_capacity = 2, .host_capacity = 3});
  EXPECT_EQ(two_tiers.required_bytes().storage_read, 0U);  // without storage there is nothing to charge
}

// An update on the host of n states, all of them dirty each time: with room for k in both tiers, Belady's formula
// again, for reads and, as each is modified each time, for writes.
TEST(PhaseBound, AHostUpdateStreamsItsStatesThroughStorage) {
  constexpr std::uint32_t n = 8;
  constexpr byte_count size = 5040;
  for (std::uint32_t k = 1; k <= n; ++k) {
    trace t;
    for (std::uint32_t i = 0; i < n; ++i) {
      t.item_bytes.push_back(size);
      t.steps.push_back(on_host(2, {{i, r | w}}, "update"));
    }
    const machine m{.device_capacity = size, .host_capacity = (k - 1) * size, .storage = {{100, 100}}};
    const phase_bound b(t, m);
    EXPECT_EQ(b.required_bytes(), (link_volume{0, 0, size * n * (n - k) / (n - 1), size * n * (n - k) / (n - 1)}));
    EXPECT_DOUBLE_EQ(b.evaluate(m).whole.cpu_seconds, 16);
  }
}

// A gradient made on the device and a weight made on the host each iteration must cross, however much room there is.
TEST(PhaseBound, DataThatTheOtherSideNeedsMustCross) {
  const trace t{{100, 30}, {on_device(1, {{0, r}, {1, c}}, "backward"), on_host(1, {{0, w}, {1, r | f}}, "update")}};
  const machine m{.device_capacity = 1000, .host_capacity = 1000, .h2d_rate = 10, .d2h_rate = 10, .storage = {{1, 1}}};
  const phase_bound b(t, m, nothing_claimed);
  EXPECT_EQ(b.required_bytes(), (link_volume{.h2d = 100, .d2h = 30}));
  EXPECT_GE(b.evaluate(m).seconds, 10);
}

TEST(PhaseBound, JoinsMakeEnginesTakeTurns) {
  const trace t{{1, 1}, {on_device(10, {{0, r}}, "backward"), on_host(7, {{1, r}}, "update")}};
  const machine m{.device_capacity = 2, .host_capacity = 2};
  EXPECT_DOUBLE_EQ(phase_bound(t, m, nothing_claimed).evaluate(m).seconds, 10);
  bound_options joined;
  joined.joining_phases = {"update"};
  EXPECT_DOUBLE_EQ(phase_bound(t, m, joined).evaluate(m).seconds, 17);
  // One thread alone runs the host step before it can ask for the next iteration's device step, not after this one's.
  EXPECT_DOUBLE_EQ(phase_bound(t, m, {.single_caller = true}).evaluate(m).seconds, 10);
}

TEST(PhaseBound, DurationsAndRatesMayChangeAfterwards) {
  const trace t = forward_and_backward(6, 1);
  const machine m{.device_capacity = 2, .host_capacity = 6, .h2d_rate = 1, .d2h_rate = 1};
  const phase_bound b(t, m);
  EXPECT_DOUBLE_EQ(b.evaluate(m).seconds, 12);
  machine slow = m;
  slow.h2d_rate = 0.5;
  EXPECT_DOUBLE_EQ(b.evaluate(slow).seconds, 6 + 8);
  const std::vector<double> seconds(12, 0.25);
  EXPECT_DOUBLE_EQ(b.evaluate(m, seconds).seconds, 4 + 4);
  EXPECT_THROW((void)b.evaluate(m, std::vector<double>(3)), usage_error);
  slow.d2h_rate = 0;
  EXPECT_THROW((void)b.evaluate(slow), usage_error);
}

TEST(PhaseBound, RefusesAccessesToItemsThatAreNotThere) {
  EXPECT_THROW(phase_bound({{4}, {on_device(1, {{1, r}})}}, {}), usage_error);
}

TEST(PhaseBound, OfNothingIsNothing) {
  const machine m;
  EXPECT_EQ(phase_bound({}, m).evaluate(m).seconds, 0.0);
  const phase_bound idle({{}, {on_device(3, {}), on_host(5, {})}}, m, nothing_claimed);
  EXPECT_DOUBLE_EQ(idle.evaluate(m).seconds, 5);
}

TEST(PhaseBound, FurtherCutsOnlySharpen) {
  std::mt19937 random(17);
  for (int round = 0; round < 60; ++round) {
    const trace t = test::random_trace(random, {.steps = 20, .persistent = 6, .transient = 6});
    const machine m = test::random_machine(random, t, true);
    const double coarse = phase_bound(t, m).evaluate(m).seconds;
    EXPECT_GE(phase_bound(t, m, {.extra_cuts = 19}).evaluate(m).seconds, coarse * (1 - 1e-12));
  }
}

/// Capacities of random instances, in whole items of `size`.
machine room_in_items(std::mt19937& random, const trace& t, byte_count size) {
  machine m = test::random_machine(random, t, true);
  m.device_capacity = m.device_capacity / size * size;
  m.host_capacity = m.host_capacity / size * size;
  return m;
}

// Items of one size: then dividing them doesn't help, and the least reads by exhaustive search are the required ones.
TEST(RequiredBytes, OfReadsAreExactlyWhatAnExhaustiveSearchFinds) {
  std::mt19937 random(3);
  int positive = 0;
  for (int round = 0; round < 80; ++round) {
    trace t = test::random_trace(random, {.steps = 3 + test::below(random, 5), .persistent = 3, .transient = 1});
    constexpr byte_count size = 60;
    t.item_bytes.assign(t.item_bytes.size(), size);
    const machine m = room_in_items(random, t, size);
    const link_volume required = phase_bound(t, m).required_bytes();
    const residency_search device(t, m.device_capacity, true, residency_search::count::reads);
    const residency_search both(t, m.device_capacity + m.host_capacity, false, residency_search::count::reads);
    EXPECT_EQ(required.h2d, static_cast<byte_count>(std::floor(device.least() + 1e-6))) << round;
    EXPECT_EQ(required.storage_read, static_cast<byte_count>(std::floor(both.least() + 1e-6))) << round;
    positive += required.h2d > 0 ? 1 : 0;
    positive += required.storage_read > 0 ? 1 : 0;
  }
  EXPECT_GT(positive, 30);
}

TEST(RequiredBytes, AreNeverAboveWhatAnExhaustiveSearchFinds) {
  std::mt19937 random(4);
  int positive = 0;
  int exact = 0;
  for (int round = 0; round < 80; ++round) {
    const trace t = test::random_trace(
        random, {.steps = 3 + test::below(random, 5), .persistent = 2, .transient = 2, .workspaces = true});
    const machine m = test::random_machine(random, t, true);
    const link_volume required = phase_bound(t, m).required_bytes();
    const auto check = [&](byte_count bytes, byte_count capacity, bool device_only, residency_search::count what) {
      const double least = residency_search(t, capacity, device_only, what).least();
      EXPECT_LE(static_cast<double>(bytes), least + 1e-6) << round;
      positive += bytes > 0 ? 1 : 0;
      exact += static_cast<double>(bytes) >= least - 1e-6 ? 1 : 0;
    };
    check(required.h2d, m.device_capacity, true, residency_search::count::reads);
    check(required.d2h, m.device_capacity, true, residency_search::count::writes);
    check(required.storage_read, m.device_capacity + m.host_capacity, false, residency_search::count::reads);
    check(required.storage_written, m.device_capacity + m.host_capacity, false, residency_search::count::writes);
  }
  EXPECT_GT(positive, 80);
  EXPECT_GT(exact, 160);  // of 320: a bound that is always zero would not be worth having
}

}  // namespace
}  // namespace forebay::plan
