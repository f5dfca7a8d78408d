// The certified bound where it is known how steps are run: closed forms, and schedules that are timed under the same
// model and can't be quicker.
#include <gtest/gtest.h>

#include <random>

#include <forebay/base/error.hpp>
#include <forebay/plan/bound.hpp>
#include <forebay/plan/planner.hpp>

#include "random_trace.hpp"

namespace forebay::plan {
namespace {

constexpr double exact = 1e-9;

bound_search_options under(const execution_model& model) {
  bound_search_options o;
  o.execution = model;
  return o;
}

execution_model single_caller_that_joins() {
  execution_model m;
  m.single_caller = m.iterations_join = true;
  return m;
}

// `steps` device steps of a second with an item of a byte each, then as many host steps of a second. Each host step
// needs what the device step of its number made.
trace passes(std::uint32_t steps) {
  trace t;
  t.item_bytes.assign(steps, 1);
  for (std::uint32_t i = 0; i < steps; ++i) {
    t.steps.push_back({place::device, 1.0, 0, "device", {{i, uses::create}}});
  }
  for (std::uint32_t i = 0; i < steps; ++i) {
    t.steps.push_back({place::host, 1.0, 0, "host", {{i, uses::read | uses::free}}});
  }
  return t;
}

machine with_device(byte_count capacity) {
  machine m;
  m.device_capacity = capacity;
  m.host_capacity = 1000;
  return m;
}

TEST(execution_bound, host_steps_of_a_single_caller_wait_for_those_that_do_not_fit_beside_each_other) {
  constexpr std::uint32_t n = 12;
  const trace t = passes(n);
  for (const byte_count room : {1U, 2U, 5U, 12U, 100U}) {
    const machine m = with_device(room);
    // Free engines run side by side. A single caller has been granted the last device step before its first host step
    // starts, and of the granted ones `room` have not ended; it can't start before the first device step has ended.
    EXPECT_NEAR(find_bound(t, m).seconds, n, exact) << room;
    const double least = find_bound(t, m, under(single_caller_that_joins())).seconds;
    const double ahead = std::min<double>(static_cast<double>(room), n);
    EXPECT_NEAR(least, std::max<double>(n + 1, 2 * n - ahead), exact) << room;
  }
}

TEST(execution_bound, no_schedule_is_quicker_that_is_timed_under_the_same_model) {
  std::mt19937 random(7);
  int above_the_free_one = 0;
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    test::trace_shape shape;
    shape.steps = 6 + test::below(random, 20);
    shape.persistent = 3 + test::below(random, 8);
    shape.workspaces = test::below(random, 2) == 0;
    const trace t = test::random_trace(random, shape);
    const machine m = test::random_machine(random, t, test::below(random, 2) == 0);
    execution_model model;
    model.single_caller = test::below(random, 3) != 0;
    model.iterations_join = test::below(random, 2) == 0;
    if (test::below(random, 2) == 0) {
      model.joining_phases = {"update"};
    }
    const double free = find_bound(t, m).seconds;
    const double least = find_bound(t, m, under(model)).seconds;
    EXPECT_GE(least, free * (1 - exact)) << i;
    above_the_free_one += least > 1.01 * free ? 1 : 0;
    planner_options o;
    o.effort = 0.02;
    o.execution = model;
    try {
      EXPECT_GE(plan_iteration(t, m, o).predicted.period, least * (1 - exact)) << i;
      ++found;
    } catch (const capacity_error&) {  // too little room for anything in transit
    }
  }
  EXPECT_GE(above_the_free_one, 10);
  EXPECT_GE(found, 60);
}

TEST(execution_bound, its_prices_prove_it) {
  const trace t = passes(6);
  const machine m = with_device(2);
  const execution_model model = single_caller_that_joins();
  const certified_bound b = find_bound(t, m, under(model));
  EXPECT_EQ(check_certificate(t, m, b.proof, false, model), b.seconds);
  EXPECT_LE(check_certificate(t, m, b.proof), find_bound(t, m).seconds + exact);  // free engines: the prices prove less
}

}  // namespace
}  // namespace forebay::plan
