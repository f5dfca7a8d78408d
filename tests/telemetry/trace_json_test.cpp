#include <forebay/telemetry/timeline.hpp>

#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

namespace forebay::telemetry {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const time_point t0 = time_point{} + 1h;

std::string path_in_temp(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("forebay-" + std::to_string(::getpid()) + "-" + name)).string();
}

/// Thread names by tid, and the complete events.
struct parsed {
  std::map<int, std::string> threads;
  std::map<int, int> sort_index;
  std::vector<json> events;
  json root;
};

parsed parse(const std::string& text) {
  parsed p;
  p.root = json::parse(text);  // throws on anything that is not JSON, invalid UTF-8 included
  for (const json& e : p.root.at("traceEvents")) {
    if (e.at("ph") == "X") {
      p.events.push_back(e);
    } else if (e.at("name") == "thread_name") {
      p.threads[e.at("tid")] = e.at("args").at("name");
    } else if (e.at("name") == "thread_sort_index") {
      p.sort_index[e.at("tid")] = e.at("args").at("sort_index");
    }
  }
  return p;
}

TEST(TraceJson, AnEmptyTimelineIsATrace) {
  timeline t;
  EXPECT_TRUE(parse(to_trace_json(t)).events.empty());
  (void)t.lane("compute");
  const parsed p = parse(to_trace_json(t));
  ASSERT_EQ(p.threads.size(), 1U);
  EXPECT_EQ(p.threads.begin()->second, "compute");
}

TEST(TraceJson, TimesAreMicrosecondsSinceTheFirstSlice) {
  timeline t;
  const lane_id compute = t.lane("compute");
  const lane_id copy = t.lane("host to device");
  t.record({compute, "late", t0 + 5ms + 7ns, t0 + 6ms + 9ns, 0});
  t.record({copy, "early", t0, t0 + 2us, 4096});
  const parsed p = parse(to_trace_json(t));
  ASSERT_EQ(p.events.size(), 2U);
  const json& early = p.events.at(0);
  const json& late = p.events.at(1);
  EXPECT_EQ(early.at("name"), "early");
  EXPECT_DOUBLE_EQ(early.at("ts"), 0.0);
  EXPECT_DOUBLE_EQ(early.at("dur"), 2.0);
  EXPECT_EQ(early.at("args").at("bytes"), 4096U);
  EXPECT_DOUBLE_EQ(early.at("args").at("bytes_per_second"), 4096 / 2e-6);
  EXPECT_DOUBLE_EQ(late.at("ts"), 5000.007);
  EXPECT_DOUBLE_EQ(late.at("dur"), 1000.002);
  EXPECT_FALSE(late.contains("args"));
  EXPECT_EQ(p.threads.at(early.at("tid")), "host to device");
  EXPECT_EQ(p.threads.at(late.at("tid")), "compute");
  EXPECT_LT(p.sort_index.at(late.at("tid")), p.sort_index.at(early.at("tid")));
}

TEST(TraceJson, NanosecondsSurviveALongRun) {
  timeline t;
  const lane_id a = t.lane("a");
  t.record({a, "first", t0, t0 + 1ns, 0});
  t.record({a, "a day later", t0 + 24h + 1ns, t0 + 24h + 2ns, 0});
  EXPECT_NE(to_trace_json(t).find("\"ts\":86400000000.001,\"dur\":0.001"), std::string::npos);
}

TEST(TraceJson, NamesSurviveWhateverTheyHold) {
  const std::vector<std::string> names{"plain",
                                       "a \"quoted\" \\ one",
                                       "tab\tnewline\nnul" + std::string(1, '\0') + "bell\a",
                                       "h.3 \xE2\x86\x92 \xC3\xA9t\xC3\xA9 \xF0\x9F\x90\xA7",
                                       "",
                                       "</script>"};
  timeline t;
  for (const std::string& name : names) {
    t.record({t.lane("lane " + name), name, t0, t0 + 1us, 0});
  }
  const parsed p = parse(to_trace_json(t));
  ASSERT_EQ(p.events.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(p.events.at(i).at("name"), names.at(i));
    EXPECT_EQ(p.threads.at(p.events.at(i).at("tid")), "lane " + names.at(i));
  }
}

TEST(TraceJson, BytesThatAreNotUtf8AreReplaced) {
  timeline t;
  t.record({t.lane("\xC3("), "a\xFFz", t0, t0 + 1us, 0});
  const parsed p = parse(to_trace_json(t));
  EXPECT_EQ(p.events.at(0).at("name"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(p.threads.begin()->second, "\xEF\xBF\xBD(");
}

TEST(TraceJson, OverlappingSlicesOfALaneGetThreadsOfTheirOwn) {
  timeline t;
  std::mt19937 random(7);
  const std::vector<lane_id> lanes{t.lane("a"), t.lane("b")};
  for (int i = 0; i < 500; ++i) {
    const auto start = std::chrono::nanoseconds(random() % 10000);
    t.record({lanes.at(random() % 2), std::to_string(i), t0 + start,
              t0 + start + std::chrono::nanoseconds(random() % 90), 1});
  }
  const parsed p = parse(to_trace_json(t));
  ASSERT_EQ(p.events.size(), 500U);
  const std::vector<slice> slices = t.slices();
  std::map<int, double> end;
  for (const json& e : p.events) {  // they come sorted by start
    const int tid = e.at("tid");
    const double ts = e.at("ts");
    const double dur = e.at("dur");
    EXPECT_GE(ts + 1e-9, end[tid]);
    end[tid] = ts + dur;
    const slice& s = slices.at(static_cast<std::size_t>(std::stoi(e.at("name").get<std::string>())));
    EXPECT_EQ(p.threads.at(tid).substr(0, 1), s.lane == lanes[0] ? "a" : "b");
  }
  EXPECT_GT(end.size(), 2U);
}

TEST(TraceJson, DroppedSlicesAreSaid) {
  timeline t(1);
  const lane_id a = t.lane("a");
  t.record({a, "1", t0, t0 + 1us, 0});
  t.record({a, "2", t0, t0 + 1us, 0});
  EXPECT_EQ(parse(to_trace_json(t)).root.at("otherData").at("dropped_slices"), 1);
}

TEST(WriteTrace, WritesTheSameText) {
  timeline t;
  const lane_id a = t.lane("a");
  for (int i = 0; i < 30000; ++i) {  // more than one flush
    t.record({a, "step \"" + std::to_string(i), t0 + i * 1us, t0 + (i + 1) * 1us, 5});
  }
  const std::string path = path_in_temp("trace.json");
  write_trace(t, path);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), to_trace_json(t));
  EXPECT_GT(text.str().size(), std::size_t{2} << 20U);
  EXPECT_EQ(parse(text.str()).events.size(), 30000U);
  std::filesystem::remove(path);
}

TEST(WriteTrace, ErrorsNameThePathAndTheErrno) {
  timeline t;
  try {
    write_trace(t, "/nonexistent/trace.json");
    FAIL() << "no error";
  } catch (const io_error& e) {
    EXPECT_EQ(e.error_number(), ENOENT);
    EXPECT_NE(std::string(e.what()).find("/nonexistent/trace.json"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("ENOENT"), std::string::npos);
  }
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  try {
    write_trace(t, "/dev/full");
    FAIL() << "no error";
  } catch (const io_error& e) {
    EXPECT_EQ(e.error_number(), ENOSPC);
  }
}

}  // namespace
}  // namespace forebay::telemetry
