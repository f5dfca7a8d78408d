#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/rotate.hpp>
#include <forebay/plan/verify.hpp>

#include "instances.hpp"

namespace forebay::plan {
namespace {

// A cyclic schedule has no beginning: however it is written down it breaks no rule and takes the same time.
TEST(Rotate, ChangesNeitherValidityNorPeriod) {
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "tiny")) {
    const schedule s = plan_iteration(i.trace, i.machine, {.effort = 0.0}).steady;
    const double period = evaluate(i.trace, i.machine, s).period;
    for (std::size_t first = 0; first < s.operations.size(); ++first) {
      const schedule r = rotated(i.trace, s, first);
      ASSERT_EQ(r.operations.front(), s.operations[first]);
      const std::optional<breach> found = verify(i.trace, i.machine, r);
      ASSERT_FALSE(found) << i.name << " from " << first << ": " << found->what;
      ASSERT_NEAR(evaluate(i.trace, i.machine, r).period, period, 1e-6 * period) << i.name << " from " << first;
    }
  }
}

TEST(Rotate, OnceRoundIsTheSame) {
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "tiny")) {
    const schedule s = plan_iteration(i.trace, i.machine, {.effort = 0.0}).steady;
    schedule r = s;
    for (std::size_t n = 0; n < s.operations.size(); ++n) {
      r = rotated(i.trace, r, 1 % s.operations.size());
    }
    EXPECT_EQ(r.operations, s.operations) << i.name;
    EXPECT_EQ(r.at_start, s.at_start) << i.name;
  }
}

TEST(Rotate, FromTheFirstStepTheStepsStandInOrder) {
  const trace t{{4096},
                {{place::device, 1.0, 0, "a", {{0, uses::read}}}, {place::device, 1.0, 0, "b", {{0, uses::read}}}}};
  const schedule s{
      {run_step(1), move_item(0, link::d2h), run_step(0), drop_copy(0, copies::host)}, {copies::device}, {0}};
  EXPECT_FALSE(steps_in_order(s));
  const schedule r = from_first_step(t, s);
  EXPECT_TRUE(steps_in_order(r));
  const std::vector<operation> expected{move_item(0, link::d2h), run_step(0), drop_copy(0, copies::host), run_step(1)};
  EXPECT_EQ(r.operations, expected);
  EXPECT_EQ(from_first_step(t, r).operations, expected);
}

TEST(Rotate, RefusesAnOperationThatIsNotThere) { EXPECT_THROW(static_cast<void>(rotated({}, {}, 0)), usage_error); }

}  // namespace
}  // namespace forebay::plan
