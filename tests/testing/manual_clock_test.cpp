#include <forebay/testing/manual_clock.hpp>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay::testing {
namespace {

using namespace std::chrono_literals;

TEST(manual_clock, moves_only_when_told) {
  manual_clock c(time_point{5s});
  EXPECT_EQ(c.now(), time_point{5s});
  c.sleep_until(time_point{5s});  // due already
  c.advance(250ms);
  EXPECT_EQ(c.now(), time_point{5250ms});
  EXPECT_THROW(c.advance(-1ns), usage_error);
}

TEST(manual_clock, wakes_a_sleeper_at_its_deadline_and_not_before) {
  manual_clock c;
  std::atomic<bool> early{false};
  std::atomic<bool> late{false};
  std::thread first([&] {
    c.sleep_until(time_point{1s});
    early = true;
  });
  std::thread second([&] {
    c.sleep_until(time_point{2s});
    late = true;
  });
  c.wait_for_sleepers(2);
  c.advance(1s);
  first.join();
  EXPECT_TRUE(early);
  EXPECT_FALSE(late);
  EXPECT_EQ(c.sleepers(), 1U);
  c.advance(1s);
  second.join();
  EXPECT_TRUE(late);
  EXPECT_EQ(c.sleepers(), 0U);
}

}  // namespace
}  // namespace forebay::testing
