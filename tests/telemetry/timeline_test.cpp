#include <forebay/telemetry/timeline.hpp>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay::telemetry {
namespace {

using namespace std::chrono_literals;

const time_point t0 = time_point{} + 1h;

slice make(lane_id lane, duration start, duration end, std::string name = "s", byte_count bytes = 0) {
  return {lane, std::move(name), t0 + start, t0 + end, bytes};
}

TEST(Timeline, LanesKeepTheirOrderAndIdentity) {
  timeline t;
  const lane_id compute = t.lane("compute");
  const lane_id copy = t.lane("host to device");
  EXPECT_NE(compute, copy);
  EXPECT_EQ(t.lane("compute"), compute);
  EXPECT_EQ(t.lanes(), (std::vector<std::string>{"compute", "host to device"}));
}

TEST(Timeline, KeepsTheOldestAndCountsTheRest) {
  timeline t(3);
  const lane_id lane = t.lane("a");
  for (int i = 0; i < 10; ++i) {
    t.record(make(lane, i * 1us, (i + 1) * 1us, std::to_string(i)));
  }
  ASSERT_EQ(t.slices().size(), 3U);
  EXPECT_EQ(t.slices().at(0).name, "0");
  EXPECT_EQ(t.slices().at(2).name, "2");
  EXPECT_EQ(t.dropped(), 7U);
}

TEST(Timeline, AZeroLimitRecordsNothing) {
  timeline t(0);
  t.record(make(t.lane("a"), 0us, 1us));
  EXPECT_TRUE(t.slices().empty());
  EXPECT_EQ(t.dropped(), 1U);
}

TEST(Timeline, RefusesALaneOfAnotherTimeline) {
  timeline t;
  EXPECT_THROW(t.record(make(0, 0us, 1us)), usage_error);
}

TEST(Timeline, InOrderStartsAfterTheLanesLastEnd) {
  timeline t;
  const lane_id a = t.lane("a");
  const lane_id b = t.lane("b");
  t.record_in_order(make(a, 0us, 10us));
  t.record_in_order(make(a, 4us, 15us));   // queued behind the first: it began when that one ended
  t.record_in_order(make(b, 4us, 15us));   // another lane is another resource
  t.record_in_order(make(a, 20us, 22us));  // idle in between
  t.record_in_order(make(a, 1us, 21us));   // ends inside the last one: nothing is left of it
  const auto all = t.slices();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[1].start, t0 + 10us);
  EXPECT_EQ(all[1].end, t0 + 15us);
  EXPECT_EQ(all[2].start, t0 + 4us);
  EXPECT_EQ(all[3].start, t0 + 20us);
  EXPECT_EQ(all[4].start, t0 + 22us);
  EXPECT_EQ(all[4].end, t0 + 22us);
}

TEST(Timeline, AnEndBeforeTheStartIsTheStart) {
  timeline t;
  t.record(make(t.lane("a"), 5us, 3us));
  EXPECT_EQ(t.slices().at(0).end, t0 + 5us);
}

TEST(Timeline, ManyThreadsLoseNothing) {
  constexpr int threads = 8;
  constexpr int each = 2000;
  timeline t(threads * each - 100);
  std::vector<std::thread> pool;
  for (int k = 0; k < threads; ++k) {
    pool.emplace_back([&t, k] {
      for (int i = 0; i < each; ++i) {
        const lane_id lane = t.lane("lane " + std::to_string((k + i) % 5));
        t.record(make(lane, i * 1us, (i + 1) * 1us, std::to_string(k * each + i)));
        if (i % 500 == 0) {
          EXPECT_LE(t.slices().size(), static_cast<std::size_t>(threads * each));
          EXPECT_LE(t.lanes().size(), 5U);
        }
      }
    });
  }
  for (auto& thread : pool) {
    thread.join();
  }
  std::set<std::string> names;
  const auto lanes = t.lanes();
  EXPECT_EQ(lanes.size(), 5U);
  for (const slice& s : t.slices()) {
    names.insert(s.name);
    const int value = std::stoi(s.name);
    EXPECT_EQ(lanes.at(s.lane), "lane " + std::to_string((value / each + value % each) % 5));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(threads * each - 100));
  EXPECT_EQ(t.dropped(), 100U);
}

}  // namespace
}  // namespace forebay::telemetry
