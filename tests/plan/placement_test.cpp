#include <forebay/plan/placement.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/verify.hpp>

#include "random_schedule.hpp"

namespace forebay::plan {
namespace {

bool there_at(const residency& r, std::uint32_t operation, std::uint32_t period) {
  return (operation >= r.first && operation < r.first + r.length) || operation + period < r.first + r.length;
}

/// Pairwise, at every operation; and that the most bytes at once are what `load` says.
void check(const placement& p, std::uint32_t period, byte_count alignment) {
  byte_count load = 0;
  for (std::uint32_t k = 0; k < period; ++k) {
    byte_count now = 0;
    for (const residency& a : p.stays) {
      if (!there_at(a, k, period)) {
        continue;
      }
      now += a.bytes;
      ASSERT_EQ(a.offset % alignment, 0U);
      ASSERT_LE(a.offset + a.bytes, p.height);
      for (const residency& b : p.stays) {
        const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
        ASSERT_TRUE(&a == &b || !there_at(b, k, period) || apart) << "at " << k;
      }
    }
    load = std::max(load, now);
  }
  EXPECT_EQ(p.load, load);
  EXPECT_GE(p.height, p.load);
}

TEST(plan_placement, a_stay_across_the_end_keeps_its_offset) {
  trace t;
  t.item_bytes = {4, 8, 4};
  t.steps.resize(2);
  t.steps[0].accesses = {{0, uses::read | uses::free}, {1, uses::create}};
  t.steps[1].accesses = {{1, uses::free}, {0, uses::create}, {2, uses::read}};
  const schedule s{{run_step(0), run_step(1)}, {copies::device, copies::none, copies::device}, {0, 0, 0}};
  const placement p = place_on_device(t, s, 4);
  ASSERT_EQ(p.stays.size(), 3U);
  check(p, 2, 4);
  EXPECT_EQ(p.height, 16U);  // all three are there during either step
  EXPECT_TRUE(std::any_of(p.stays.begin(), p.stays.end(), [](const residency& r) {
    return r.index == 0 && r.first == 1 && r.length == 2;  // one stay, over the end
  }));
}

TEST(plan_placement, what_is_never_there_together_shares_memory) {
  trace t;
  t.item_bytes = {100, 200};
  t.steps.resize(2);
  t.steps[0].accesses = {{0, uses::create | uses::free}};
  t.steps[0].workspace = 50;
  t.steps[1].accesses = {{1, uses::create | uses::free}};
  const schedule s{{run_step(0), run_step(1)}, {copies::none, copies::none}, {0, 0}};
  const placement p = place_on_device(t, s, 256);
  check(p, 2, 256);
  EXPECT_EQ(p.height, 512U);
  EXPECT_EQ(p.stays.size(), 3U);
}

TEST(plan_placement, random_schedules_do_not_overlap) {
  std::mt19937 random(11);
  int placed = 0;
  for (int round = 0; round < 400; ++round) {
    const trace t = test::random_trace(random, {10, 5, 4, 9, true, false});
    const machine m = test::random_machine(random, t, round % 2 == 0);
    const auto s = test::random_schedule(random, t, m).make();
    if (!s) {
      continue;
    }
    const auto wrong = verify(t, m, *s);
    ASSERT_FALSE(wrong) << wrong->what << " at " << wrong->operation << " round " << round;
    const placement p = place_on_device(t, *s, 1);
    EXPECT_LE(p.load, m.device_capacity);
    check(p, static_cast<std::uint32_t>(s->operations.size()), 1);
    ++placed;
  }
  EXPECT_GT(placed, 200);
}

TEST(plan_placement, refuses_what_is_no_schedule) {
  trace t;
  t.item_bytes = {4};
  EXPECT_THROW(static_cast<void>(place_on_device(t, {{}, {}, {}})), usage_error);
  EXPECT_THROW(static_cast<void>(place_on_device(t, {{drop_copy(0, copies::device)}, {copies::none}, {0}})),
               usage_error);
  EXPECT_THROW(static_cast<void>(place_on_device(t, {{move_item(0, link::h2d)}, {copies::host}, {0}})), usage_error);
  EXPECT_THROW(static_cast<void>(place_on_device(t, {{}, {copies::host}, {0}}, 3)), usage_error);
}

}  // namespace
}  // namespace forebay::plan
