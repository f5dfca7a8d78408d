// What would help: against closed forms in which one resource binds.
#include <gtest/gtest.h>

#include <cmath>

#include <forebay/base/error.hpp>
#include <forebay/plan/limits.hpp>

namespace forebay::plan {
namespace {

// Items that are each read once an iteration by a device that holds only some of them: of n items of one byte with
// capacity c, every iteration has to bring n - c of them at least.
trace one_pass(std::uint32_t items, double seconds) {
  trace t;
  t.item_bytes.assign(items, 1'000'000);
  for (std::uint32_t i = 0; i < items; ++i) {
    t.steps.push_back({place::device, seconds, 0, "pass", {{i, uses::read}}});
  }
  return t;
}

machine slow_link(double rate) {
  machine m;
  m.device_capacity = 10'000'000;
  m.host_capacity = 1'000'000'000;
  m.h2d_rate = rate;
  m.d2h_rate = rate;
  return m;
}

const limit& of(const std::vector<limit>& limits, improvement what) {
  for (const limit& l : limits) {
    if (l.what == what) {
      return l;
    }
  }
  throw std::runtime_error("no such limit");
}

TEST(limits, the_link_that_binds_is_the_one_that_matters) {
  const trace t = one_pass(100, 0.0001);  // 10 ms
  const machine m = slow_link(1e9);       // 90 MB at least: 90 ms
  const double now = find_bound(t, m).seconds;
  ASSERT_NEAR(now, 0.09, 0.003);
  const std::vector<limit> limits = find_limits(t, m, now);
  EXPECT_EQ(limits.front().what, improvement::h2d);
  EXPECT_NEAR(limits.front().seconds_if_twice, now / 2, 0.02 * now);
  EXPECT_EQ(limits.front().matters_from, 1.05);
  EXPECT_EQ(of(limits, improvement::compute).matters_from, 0.0);
  EXPECT_EQ(of(limits, improvement::d2h).matters_from, 0.0);  // nothing is ever written
  // Twice the device's memory leaves 80 of 90 to bring; half as much more 85: that is the first to gain a fiftieth.
  EXPECT_NEAR(of(limits, improvement::device_capacity).seconds_if_twice, 0.08, 0.003);
  EXPECT_LE(of(limits, improvement::device_capacity).matters_from, 1.5);
  EXPECT_GT(of(limits, improvement::device_capacity).matters_from, 1.05);
}

TEST(limits, where_steps_bind_no_link_matters) {
  const trace t = one_pass(100, 0.01);
  const machine m = slow_link(1e9);
  const double now = find_bound(t, m).seconds;
  ASSERT_NEAR(now, 1.0, 1e-6);
  const std::vector<limit> limits = find_limits(t, m, now);
  EXPECT_EQ(limits.front().what, improvement::compute);
  EXPECT_NEAR(limits.front().seconds_if_twice, 0.5, 1e-6);
  EXPECT_EQ(of(limits, improvement::h2d).matters_from, 0.0);
  EXPECT_EQ(of(limits, improvement::device_capacity).seconds_if_twice, now);
}

TEST(limits, an_improvement_never_makes_a_bound_greater) {
  trace t = one_pass(40, 0.0005);
  t.steps.push_back({place::host, 0.001, 0, "update", {{0, uses::read | uses::write}, {7, uses::read}}});
  machine m = slow_link(4e8);
  m.host_capacity = 20'000'000;
  m.half_duplex_storage = true;
  m.storage = {{3e8, 2e8, {{0.5, 2.6e8}}}};
  const double now = find_bound(t, m).seconds;
  for (const limit& l : find_limits(t, m, now)) {
    EXPECT_LE(l.seconds_if_twice, now) << to_string(l.what);
    EXPECT_TRUE(l.matters_from == 0.0 || l.matters_from >= 1.05) << to_string(l.what);
  }
}

TEST(limits, refuse_what_is_no_improvement) {
  const trace t = one_pass(2, 0.1);
  for (const double factor : {0.5, 0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(static_cast<void>(improve(t, slow_link(1e9), improvement::h2d, factor)), usage_error) << factor;
  }
}

}  // namespace
}  // namespace forebay::plan
