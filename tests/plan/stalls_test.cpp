#include <numeric>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/stalls.hpp>

#include "instances.hpp"

namespace forebay::plan {
namespace {

trace_step device_step(double seconds, std::vector<item_access> accesses) {
  trace_step s;
  s.seconds = seconds;
  s.accesses = std::move(accesses);
  return s;
}

/// One item of 8 KiB that a device of one such item reads from the host in turn with another: two copies of 8 s each
/// iteration, two steps of 1 s, and nothing overlaps.
struct two_items {
  trace t{{8_KiB, 8_KiB}, {device_step(1.0, {{0, uses::read}}), device_step(1.0, {{1, uses::read}})}};
  machine m{8_KiB, 1_MiB, 1024.0, 1024.0, {}, false};
  schedule s{{move_item(0, link::h2d), run_step(0), drop_copy(0, copies::device), move_item(1, link::h2d), run_step(1),
              drop_copy(1, copies::device)},
             {copies::host, copies::host},
             {0, 0}};
};

TEST(stalls, a_step_waits_for_the_copy_of_its_item) {
  const two_items x;
  const evaluation e = evaluate(x.t, x.m, x.s);
  ASSERT_TRUE(e.complete) << e.obstacle;
  ASSERT_DOUBLE_EQ(e.period, 18.0);
  const std::vector<stall> all = find_stalls(x.t, x.s, e, place::device);
  ASSERT_EQ(all.size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(all[i].step, i == 0 ? 1U : 4U);
    EXPECT_DOUBLE_EQ(all[i].finish - all[i].start, 8.0);
    ASSERT_EQ(all[i].causes.size(), 1U);
    EXPECT_EQ(all[i].causes[0].operation, std::optional<std::size_t>(i == 0 ? 0 : 3));
  }
}

TEST(stalls, an_item_from_storage_has_two_causes) {
  // The host has room for one item, too: read 4 s, copied 8 s, computed 1 s, one after the other.
  two_items x;
  x.m.host_capacity = 8_KiB;
  x.m.storage = {{2048.0, 2048.0}};
  x.s.operations.clear();
  for (const item_index i : {0U, 1U}) {
    for (const operation& op : {move_item(i, link::storage_read), move_item(i, link::h2d), drop_copy(i, copies::host),
                                run_step(i), drop_copy(i, copies::device)}) {
      x.s.operations.push_back(op);
    }
  }
  x.s.at_start = {copies::storage, copies::storage};
  const evaluation e = evaluate(x.t, x.m, x.s);
  ASSERT_TRUE(e.complete) << e.obstacle;
  // A copy of 8 s ends; then the step of 1 s and the next read of 4 s begin at once, and the next copy follows the
  // read: the step after it has been waited for during 8 s of copying and the 3 s of reading after the first step's
  // end.
  ASSERT_DOUBLE_EQ(e.period, 24.0);
  const std::vector<stall> all = find_stalls(x.t, x.s, e, place::device);
  ASSERT_EQ(all.size(), 2U);
  ASSERT_EQ(all[1].causes.size(), 2U);
  EXPECT_EQ(all[1].causes[0].operation, std::optional<std::size_t>(6));
  EXPECT_DOUBLE_EQ(all[1].causes[0].finish - all[1].causes[0].start, 8.0);
  EXPECT_EQ(all[1].causes[1].operation, std::optional<std::size_t>(5));
  EXPECT_DOUBLE_EQ(all[1].causes[1].finish - all[1].causes[1].start, 3.0);
}

TEST(stalls, a_device_step_waits_for_the_host_step_before_it) {
  trace t{{8_KiB}, {device_step(1.0, {{0, uses::write}}), device_step(5.0, {{0, uses::write}})}};
  t.steps[1].where = place::host;
  const machine m{8_KiB, 8_KiB, 8192.0, 8192.0, {}, false};
  const schedule s{{run_step(0), move_item(0, link::d2h), drop_copy(0, copies::device), run_step(1),
                    move_item(0, link::h2d), drop_copy(0, copies::host)},
                   {copies::device},
                   {0}};
  const evaluation e = evaluate(t, m, s);
  ASSERT_TRUE(e.complete) << e.obstacle;
  const std::vector<stall> all = find_stalls(t, s, e, place::device);
  ASSERT_EQ(all.size(), 1U);  // in the period of 8 s: the copy down of 1 s, the host step of 5 s, the copy up of 1 s
  ASSERT_EQ(all[0].causes.size(), 3U);
  EXPECT_EQ(all[0].causes[0].operation, std::optional<std::size_t>(4));
  EXPECT_EQ(all[0].causes[1].operation, std::optional<std::size_t>(3));
  EXPECT_EQ(all[0].causes[2].operation, std::optional<std::size_t>(1));
}

TEST(stalls, refuses_an_evaluation_of_another_schedule) {
  const two_items x;
  evaluation e = evaluate(x.t, x.m, x.s);
  e.times.pop_back();
  EXPECT_THROW(static_cast<void>(find_stalls(x.t, x.s, e, place::device)), usage_error);
}

// On an engine, steps and stalls fill the period; a stall's parts fill the stall.
TEST(stalls, account_for_the_whole_period) {
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "gpt")) {
    const planned p = plan_iteration(i.trace, i.machine, {.effort = 0.05});
    for (const place where : {place::device, place::host}) {
      double total = 0.0;
      bool any = false;
      for (const trace_step& s : i.trace.steps) {
        total += s.where == where ? s.seconds : 0.0;
        any = any || s.where == where;
      }
      for (const stall& st : find_stalls(i.trace, p.steady, p.predicted, where)) {
        total += st.finish - st.start;
        const double parts = std::accumulate(st.causes.begin(), st.causes.end(), 0.0,
                                             [](double sum, const stall_cause& c) { return sum + c.finish - c.start; });
        EXPECT_NEAR(parts, st.finish - st.start, 1e-6 * p.predicted.period) << i.name;
        for (const stall_cause& c : st.causes) {
          EXPECT_TRUE(c.operation.has_value()) << i.name << ": from " << c.start << " to " << c.finish;
        }
      }
      if (any) {
        EXPECT_NEAR(total, p.predicted.period, 1e-6 * p.predicted.period) << i.name;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::plan
