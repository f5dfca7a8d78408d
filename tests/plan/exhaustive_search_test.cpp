#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/bound.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/verify.hpp>

#include "exhaustive_search.hpp"
#include "instances.hpp"
#include "random_trace.hpp"

namespace forebay::plan {
namespace {

using test::below;

constexpr double tolerance = 1e-8;

std::optional<double> optimum_of(const trace& t, const machine& m) { return test::exhaustive_search(t, m).least(); }

// Found by another program, with another search.
TEST(ExhaustiveSearch, FindsTheStoredOptima) {
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "tiny")) {
    const bool quick = i.name.rfind("tiny2", 0) == 0 || i.trace.item_bytes.size() == 3;
    if (quick) {
      EXPECT_DOUBLE_EQ(optimum_of(i.trace, i.machine).value_or(0.0), i.optimum.value()) << i.name;
    }
  }
}

/// What the files don't have.
struct small_kind {
  std::uint32_t paths = 1;
  bool half_duplex = false;
  bool writes_only = false;      ///< a use that writes does not read
  bool freed_when_made = false;  ///< one more item, in one step
};

struct small_instance {
  plan::trace trace;
  plan::machine machine;
};

/// Items that go round, most of them written, more than device and host hold together.
small_instance make_small(std::mt19937& random, const small_kind& kind) {
  small_instance i;
  const std::uint32_t items = 3 + (kind.paths == 1 && !kind.freed_when_made ? below(random, 2) : 0);
  i.trace.steps.resize(items);
  for (item_index k = 0; k < items; ++k) {
    i.trace.item_bytes.push_back(1 + below(random, 2));
    trace_step& s = i.trace.steps[k];
    s.where = below(random, 6) == 0 ? place::host : place::device;
    s.seconds = static_cast<double>(below(random, 3));
    s.accesses.push_back({k, below(random, 4) == 0 ? uses::read : uses::write});
    if (!kind.writes_only) {
      s.accesses[0].how = s.accesses[0].how | uses::read;
    }
  }
  if (kind.freed_when_made) {
    i.trace.steps[below(random, items)].accesses.push_back(
        {static_cast<item_index>(i.trace.item_bytes.size()), uses::create | uses::free});
    i.trace.item_bytes.push_back(1 + below(random, 2));
  }
  const capacity_needs needs = minimum_capacity(i.trace, 0);
  i.machine.device_capacity = needs.device.bytes + below(random, 2);
  i.machine.host_capacity = 2 + below(random, 2);
  i.machine.h2d_rate = 2;
  i.machine.d2h_rate = 2;
  for (std::uint32_t p = 0; p < kind.paths; ++p) {
    i.machine.storage.push_back({1.0 + below(random, 2), 1.0});
  }
  i.machine.half_duplex_storage = kind.half_duplex;
  return i;
}

/// What the planner and the bounds make of instances, beside their optima.
struct comparison {
  int compared = 0;
  int equal = 0;        ///< plans that are as good as can be
  int different = 0;    ///< optima that another machine changes
  double ratios = 0.0;  ///< period / optimum, added up

  void add(const small_instance& i, double least) {
    for (const bool whole : {false, true}) {
      bound_search_options o;
      o.items_move_whole = whole;
      EXPECT_LE(find_bound(i.trace, i.machine, o).seconds, least * (1.0 + tolerance));
    }
    planner_options o;
    o.effort = 0.02;
    o.known_bound = least;
    o.close_enough = 1.0 + tolerance;
    const planned p = plan_iteration(i.trace, i.machine, o);
    EXPECT_FALSE(verify(i.trace, i.machine, p.steady).has_value());
    EXPECT_GE(p.predicted.period, least * (1.0 - tolerance));
    ++compared;
    equal += p.predicted.period <= least * (1.0 + tolerance) ? 1 : 0;
    ratios += p.predicted.period / least;
  }
};

/// On instances of these seeds, and on what `other` makes of their machines.
template <class Change>
comparison compare(const small_kind& kind, std::uint32_t first, std::uint32_t last, const Change& other) {
  comparison c;
  for (std::uint32_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const small_instance i = make_small(random, kind);
    const std::optional<double> least = optimum_of(i.trace, i.machine);
    if (least) {
      c.add(i, *least);
      machine changed = i.machine;
      other(changed);
      c.different += optimum_of(i.trace, changed) != least ? 1 : 0;
    } else {
      EXPECT_THROW(static_cast<void>(plan_iteration(i.trace, i.machine)), capacity_error);
    }
  }
  return c;
}

void expect_good(const comparison& c) {
  EXPECT_GT(c.compared, 0);
  EXPECT_GE(2 * c.equal, c.compared);
  EXPECT_LE(c.ratios, 1.12 * c.compared);
}

TEST(ExhaustiveSearch, HalfDuplexStorage) {
  const comparison c = compare({1, true}, 10, 15, [](machine& m) { m.half_duplex_storage = false; });
  expect_good(c);
  EXPECT_GT(c.different, 0);
}

TEST(ExhaustiveSearch, TwoPaths) {
  const comparison c = compare({2, false}, 6, 11, [](machine& m) { m.storage.pop_back(); });
  expect_good(c);
  EXPECT_GT(c.different, 0);
  expect_good(compare({2, true}, 5, 9, [](machine&) {}));
}

TEST(ExhaustiveSearch, UsesThatOnlyWrite) {
  expect_good(compare({1, false, true}, 10, 15, [](machine&) {}));
}

TEST(ExhaustiveSearch, MadeAndFreedInOneStep) {
  expect_good(compare({1, false, false, true}, 0, 11, [](machine&) {}));
}

}  // namespace
}  // namespace forebay::plan
