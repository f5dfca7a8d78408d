#include <forebay/plan/bound.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/split.hpp>

#include "instances.hpp"
#include "random_trace.hpp"

namespace forebay::plan {
namespace {

using test::below;

constexpr double tolerance = 1e-8;

double proved(const trace& t, const machine& m, bool whole = false) {
  const certified_bound b = find_bound(t, m, {whole, {}});
  EXPECT_EQ(b.seconds, check_certificate(t, m, b.proof, whole));
  return b.seconds;
}

/// The shortest period known for an instance whose items move whole, as printed.
double shortest_known(const instance& i) {
  double shortest = std::min(i.best_period, i.optimum.value_or(i.best_period)) * (1.0 + tolerance);
  for (const auto& [rule, period] : i.baselines.items()) {
    if (rule != "chunked_by_4" && period.is_number()) {
      shortest = std::min(shortest, period.get<double>() * (1.0 + 1e-5));
    }
  }
  return shortest;
}

TEST(Bound, NoLessThanTheKnownBoundsAndNoMoreThanWhatIsPossible) {
  for (const char* kind : {"tiny", "gpt", "random", "adversarial"}) {
    for (const instance& i : read_instances(FOREBAY_INSTANCES, kind)) {
      SCOPED_TRACE(i.name);
      const double bound = proved(i.trace, i.machine, true);
      EXPECT_GE(bound, i.lower_bound * (1.0 - tolerance));
      EXPECT_LE(bound, shortest_known(i));
      const double divisible = proved(i.trace, i.machine, false);
      EXPECT_LE(divisible, shortest_known(i));
      if (i.baselines.contains("chunked_by_4")) {
        EXPECT_LE(divisible, i.baselines.at("chunked_by_4").get<double>() * (1.0 + 1e-5));
      }
    }
  }
}

TEST(Bound, OfASplitTraceIsThatOfDivisibleItems) {
  for (const char* kind : {"tiny", "gpt", "random", "adversarial"}) {
    for (const instance& i : read_instances(FOREBAY_INSTANCES, kind)) {
      SCOPED_TRACE(i.name);
      const trace parts = split_items_evenly(i.trace, 4).parts;
      EXPECT_NEAR(proved(parts, i.machine), proved(i.trace, i.machine), tolerance * i.lower_bound);
    }
  }
}

/// A long trace is cut at few boundaries at a time; models lose nothing by it.
TEST(Bound, FewCutsSufficeForModels) {
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "gpt")) {
    SCOPED_TRACE(i.name);
    bound_search_options few;
    few.most_cuts = 32;
    EXPECT_GE(find_bound(i.trace, i.machine, few).seconds, 0.999 * find_bound(i.trace, i.machine).seconds);
  }
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "random")) {
    for (const std::uint32_t cuts : {2U, 3U, 7U}) {
      bound_search_options few;
      few.most_cuts = cuts;
      EXPECT_LE(find_bound(i.trace, i.machine, few).seconds, shortest_known(i));
    }
  }
}

/// Prices near the best ones, unlike random ones, are those where an error of the checker would be seen first.
TEST(Bound, PricesNearTheBestProveNoMoreThanWhatIsPossible) {
  std::mt19937 random(1);
  for (const char* kind : {"tiny", "random", "adversarial"}) {
    for (const instance& i : read_instances(FOREBAY_INSTANCES, kind)) {
      SCOPED_TRACE(i.name);
      const certificate best = find_bound(i.trace, i.machine, {true, {}}).proof;
      for (int n = 0; n < 30; ++n) {
        certificate c = best;
        const std::size_t from = below(random, static_cast<std::uint32_t>(c.h2d.size()));
        for (std::size_t k = from; k < c.h2d.size() && k < from + 1 + below(random, 6); ++k) {
          std::swap(c.h2d[k], c.d2h[(k + below(random, 2)) % c.d2h.size()]);  // still at most 1 together, or refused
          c.device[k] *= 0.5 + below(random, 100) / 100.0;
          c.host[(k + 1) % c.host.size()] += c.host[k] / 2;
          c.device[(k + 1) % c.device.size()] += c.device[k] / 2;
        }
        try {
          EXPECT_LE(check_certificate(i.trace, i.machine, c, true), shortest_known(i));
        } catch (const usage_error&) {
        }
      }
    }
  }
}

TEST(Bound, NoMoreThanAnyPlanInParts) {
  for (const char* kind : {"tiny", "gpt", "random", "adversarial"}) {
    for (const instance& i : read_instances(FOREBAY_INSTANCES, kind)) {
      SCOPED_TRACE(i.name);
      const trace parts = split_items_evenly(i.trace, 4).parts;
      planner_options o;
      o.effort = 0.0;
      const double period = plan_iteration(parts, i.machine, o).predicted.period;
      EXPECT_LE(proved(i.trace, i.machine, false), period * (1.0 + tolerance));
      EXPECT_LE(proved(parts, i.machine, true), period * (1.0 + tolerance));
    }
  }
}

TEST(Bound, NoMoreThanAnyPlanOfRandomTraces) {
  std::uint32_t planned = 0;
  double ratios = 0.0;
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    test::trace_shape shape;
    shape.steps = 4 + below(random, 14);
    shape.persistent = 1 + below(random, 7);
    shape.transient = below(random, 5);
    shape.workspaces = below(random, 2) == 0;
    const trace t = test::random_trace(random, shape);
    const machine m = test::random_machine(random, t, below(random, 3) > 0);
    planner_options o;
    o.effort = 0.001;
    try {
      const double period = plan_iteration(t, m, o).predicted.period;
      const double bound = proved(t, m, true);
      EXPECT_LE(bound, period * (1.0 + tolerance) + tolerance);
      EXPECT_LE(proved(t, m, false), bound + tolerance);
      ratios += bound > 0.0 ? period / bound : 1.0;
      ++planned;
    } catch (const capacity_error&) {
    }
  }
  EXPECT_GE(planned, 80U);
  EXPECT_LE(ratios / planned, 1.5);
}

/// Two items of 10 bytes, 15 of which fit, each read by a step of its own.
trace two_turns() {
  trace t;
  t.item_bytes = {10, 10};
  t.steps = {{place::device, 1.0, 0, "a", {{0, uses::read}}}, {place::device, 2.0, 0, "b", {{1, uses::read}}}};
  return t;
}

TEST(Bound, ItemsThatTakeTurns) {
  const machine m{15, 100, 2.0, 1.0, {}, false};
  // Divisible: while a step runs, 5 bytes of the other item are there and no more, so 5 come between the steps.
  EXPECT_NEAR(proved(two_turns(), m), 3.0 + 2 * 5 / 2.0, 1e-9);
  // Whole: nothing of the other item is there, so that 10 come between the steps.
  EXPECT_NEAR(proved(two_turns(), m, true), 3.0 + 2 * 10 / 2.0, 1e-9);
}

TEST(Bound, ComputeBound) {
  const machine m{20, 100, 2.0, 1.0, {}, false};
  const certified_bound b = find_bound(two_turns(), m);
  EXPECT_NEAR(b.seconds, 3.0, 1e-9);
  ASSERT_EQ(b.windows.size(), 1U);
  EXPECT_EQ(b.windows[0].charged, resource::compute);
}

/// The host goes through 100 items of 1 byte and updates them in no time. Some schedule keeps so many less one and
/// passes the others through one byte of room; no schedule moves less than those that don't fit.
struct host_sweep {
  static constexpr byte_count capacity = 40;
  trace t;

  host_sweep() {
    for (item_index i = 0; i < 100; ++i) {
      t.item_bytes.push_back(1);
      t.steps.push_back({place::host, 0.0, 0, "update", {{i, uses::read | uses::write}}});
    }
  }
  /// \param seconds_per_byte that is read and written
  void expect(const std::vector<storage_link>& storage, bool half_duplex, double seconds_per_byte) const {
    const certified_bound b = find_bound(t, {0, capacity, 1.0, 1.0, storage, half_duplex});
    EXPECT_GE(b.seconds, 60 * seconds_per_byte - 1e-9);
    EXPECT_LE(b.seconds, 61 * seconds_per_byte);
  }
};

TEST(Bound, FullDuplexStorage) {
  host_sweep().expect({{4.0, 2.0}}, false, 1 / 2.0);
  host_sweep().expect({{2.0, 8.0}}, false, 1 / 2.0);
  host_sweep().expect({{4.0, 2.0}, {1.0, 3.0}}, false, 1 / 5.0);
}

TEST(Bound, HalfDuplexStorage) {
  host_sweep().expect({{4.0, 2.0}}, true, 1 / 4.0 + 1 / 2.0);
  host_sweep().expect({{4.0, 2.0, {{0.5, 5.0}}}}, true, 1 / 2.5);
  // The first path is better at reading, the second at writing. The second writes all the time, 3 bytes a second; the
  // first reads x of the time and writes the rest: 4 x = 3 + 2 (1 - x), so that x = 5/6 and 10/3 bytes go each way.
  host_sweep().expect({{4.0, 2.0}, {1.0, 3.0}}, true, 3 / 10.0);
}

/// The host's steps and the device's alternate on the same item, so that nothing overlaps.
TEST(Bound, EnginesThatTakeTurns) {
  trace t;
  t.item_bytes = {6};
  t.steps = {{place::device, 2.0, 0, "d", {{0, uses::read | uses::write}}},
             {place::host, 5.0, 0, "h", {{0, uses::read | uses::write}}}};
  const machine m{100, 100, 2.0, 3.0, {}, false};
  // Both ways and the host share the time between steps, and prices add up to 1 in it: they prove the longest of the
  // three, where one after the other takes the sum.
  EXPECT_GE(proved(t, m), 2.0 + 5.0 - 1e-9);
  EXPECT_LE(proved(t, m), 2.0 + 6 / 3.0 + 5.0 + 6 / 2.0);
}

TEST(Bound, TheHostWorksBesideTheDevice) {
  trace t;
  t.item_bytes = {6, 6};
  t.steps = {{place::device, 2.0, 0, "", {{0, uses::read}}}, {place::host, 7.0, 0, "", {{1, uses::write}}}};
  EXPECT_NEAR(proved(t, {100, 100, 1.0, 1.0, {}, false}), 7.0, 1e-9);
}

TEST(Bound, NothingToDo) {
  EXPECT_EQ(proved({}, {}), 0.0);
  trace t;
  t.steps.resize(2);
  t.steps[0].seconds = 3.0;
  EXPECT_NEAR(proved(t, {}), 3.0, 1e-9);
  t.item_bytes = {5, 0};
  t.steps[1].accesses = {{1, uses::read}};
  EXPECT_NEAR(proved(t, {}), 3.0, 1e-9);
}

TEST(Bound, WindowsAreDescribed) {
  trace t;
  t.item_bytes = {10, 10};
  t.steps = {{place::device, 1.0, 0, "a", {{0, uses::read}}}, {place::device, 2.0, 0, "b", {{1, uses::read}}}};
  EXPECT_EQ(describe(t, {0, 3, resource::h2d, 5.0}), "h2d 5 s from a to b");
  EXPECT_EQ(describe(t, {2, 3, resource::d2h, 0.25}), "d2h 0.25 s in b");
}

TEST(Bound, StartUp) {
  trace t;
  t.item_bytes = {10, 20, 40};
  t.steps = {{place::device, 1.0, 0, "", {{0, uses::create}, {1, uses::read}}},
             {place::host, 3.0, 0, "", {{0, uses::read}, {2, uses::write}}}};
  machine m{100, 100, 1.0, 1.0, {{10.0, 1.0}}, false};
  EXPECT_NEAR(start_up_bound(t, m), 60 / 10.0, 1e-9);
  m.storage[0].read_rate = 30.0;
  EXPECT_NEAR(start_up_bound(t, m), 3.0, 1e-9);
  m.storage.clear();
  EXPECT_NEAR(start_up_bound(t, m), 3.0, 1e-9);
}

TEST(Bound, InvalidMachine) {
  EXPECT_THROW(static_cast<void>(find_bound({}, {1, 1, 0.0})), usage_error);
  EXPECT_THROW(static_cast<void>(start_up_bound({}, {1, 1, -1.0})), usage_error);
  EXPECT_THROW(static_cast<void>(find_bound({}, {}, {false, 1})), usage_error);
}

}  // namespace
}  // namespace forebay::plan
