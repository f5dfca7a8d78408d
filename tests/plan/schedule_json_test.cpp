#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/hash.hpp>
#include <forebay/plan/plan_json.hpp>

#include "json_mutations.hpp"
#include "random_trace.hpp"

namespace forebay::plan {
namespace {

std::string written(const saved_schedule& s) {
  std::ostringstream out;
  write_schedule(out, s);
  return out.str();
}

std::vector<saved_schedule> read(const std::string& text) {
  std::istringstream in(text);
  return read_schedules(in, "plans.jsonl");
}

bool same(const saved_schedule& a, const saved_schedule& b) {
  return a.steady.operations == b.steady.operations && a.steady.at_start == b.steady.at_start &&
         a.steady.stored_on == b.steady.stored_on && a.steps == b.steps && a.trace_hash == b.trace_hash &&
         a.machine_hash == b.machine_hash;
}

/// One operation of every kind.
saved_schedule small() {
  const schedule s{{move_item(0, link::storage_read, 1), move_item(0, link::h2d), run_step(0), run_step(1),
                    move_item(1, link::d2h), move_item(1, link::storage_write, 3), drop_copy(0, copies::device)},
                   {copies::storage, copies::device | copies::host},
                   {1, 0}};
  return {s, 2, 0xc0ffee00c0ffeeU, 0x0123456789abcdefU};
}

operation any_operation(std::uint32_t items, std::uint32_t steps) {
  const auto kind = *rc::gen::inRange(items == 0 ? 2 : 0, steps == 0 ? 2 : 3);
  if (kind == 2) {
    return run_step(*rc::gen::inRange(0U, steps));
  }
  const auto item = *rc::gen::inRange(0U, items);
  if (kind == 1) {
    return drop_copy(item, *rc::gen::element(copies::device, copies::host, copies::storage));
  }
  const auto over = *rc::gen::element(link::h2d, link::d2h, link::storage_read, link::storage_write);
  const bool stored = over == link::storage_read || over == link::storage_write;
  return move_item(item, over, stored ? *rc::gen::arbitrary<std::uint32_t>() : 0);
}

saved_schedule any_schedule() {
  saved_schedule s;
  const auto items = *rc::gen::inRange(0U, 6U);
  s.steps = *rc::gen::element(0U, 1U, 9U, ~0U);
  s.trace_hash = *rc::gen::arbitrary<std::uint64_t>();
  s.machine_hash = *rc::gen::arbitrary<std::uint64_t>();
  for (std::uint32_t i = 0; i < items; ++i) {
    s.steady.at_start.push_back(static_cast<copies>(*rc::gen::inRange(0, 8)));
    s.steady.stored_on.push_back(*rc::gen::arbitrary<std::uint32_t>());
  }
  const auto operations = items == 0 && s.steps == 0 ? 0 : *rc::gen::inRange(0, 12);
  for (int k = 0; k < operations; ++k) {
    s.steady.operations.push_back(any_operation(items, s.steps));
  }
  return s;
}

RC_GTEST_PROP(ScheduleJson, ReadsBackWhatItWrote, ()) {
  const saved_schedule a = any_schedule();
  const saved_schedule b = any_schedule();
  const std::string line = written(a);
  RC_ASSERT(line.find('\n') == line.size() - 1);
  const std::vector<saved_schedule> again = read(line + "\n" + written(b));
  RC_ASSERT(again.size() == 2U);
  RC_ASSERT(same(again[0], a));
  RC_ASSERT(same(again[1], b));
}

TEST(ScheduleJson, IsWhatTheHeaderSays) {
  const saved_schedule s{{{move_item(0, link::storage_read, 1), move_item(0, link::h2d), run_step(0), run_step(1),
                           drop_copy(0, copies::device)},
                          {copies::storage, copies::device | copies::host},
                          {1, 0}},
                         2,
                         0xc0ffee00c0ffeeU,
                         0x0123456789abcdefU};
  const std::string text = R"({"forebay_schedule": 1, "trace_hash": "00c0ffee00c0ffee",
      "machine_hash": "0123456789abcdef", "steps": 2, "at_start": ["s", "dh"], "stored_on": [1, 0],
      "operations": [["storage_read", 0, 1], ["h2d", 0], ["step", 0], ["step", 1], ["drop", 0, "d"]]})";
  EXPECT_EQ(nlohmann::json::parse(written(s)), nlohmann::json::parse(text));
}

TEST(ScheduleJson, EveryWrongFieldIsNamed) {
  test::expect_every_mutation_named([](const std::string& text) { static_cast<void>(read(text)); },
                                    nlohmann::json::parse(written(small())), {});
}

struct wrong {
  const char* field;
  const char* value;
  const char* named;
};

class ScheduleJsonRefuses : public testing::TestWithParam<wrong> {};

TEST_P(ScheduleJsonRefuses, AndNamesTheFieldAndTheLimit) {
  nlohmann::json j = nlohmann::json::parse(written(small()));
  j[GetParam().field] = nlohmann::json::parse(GetParam().value);
  test::expect_refused([](const std::string& text) { static_cast<void>(read(text)); }, j.dump(), GetParam().named);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ScheduleJsonRefuses,
    testing::Values(wrong{"forebay_schedule", "0", "forebay_schedule is 0; this library reads version 1"},
                    wrong{"trace_hash", R"("c0ffee")", "trace_hash must be a text of 16 hexadecimal digits"},
                    wrong{"trace_hash", R"("00c0ffee00c0ffeg")", "trace_hash"},
                    wrong{"machine_hash", R"("-0c0ffee00c0ffee")", "machine_hash"},
                    wrong{"machine_hash", R"("00000000123456789")", "machine_hash"},
                    wrong{"steps", "4294967296", "steps must be a whole number up to 4294967295, and is 4294967296"},
                    wrong{"steps", "1", "operations[3][1] must be a whole number below the 1 steps, and is 1"},
                    wrong{"at_start", R"(["dd", ""])", "at_start[0] must be letters of d, h and s"},
                    wrong{"at_start", R"(["d"])", "stored_on must be a list of 1, as at_start is, and is a list of 2"},
                    wrong{"stored_on", "[0, 4294967296]", "stored_on[1]"},
                    wrong{"operations", "[[]]", "operations[0] must be a list"},
                    wrong{"operations", R"([["step"]])", "operations[0] must be a list of 2"},
                    wrong{"operations", R"([["step", 0, 0]])", "operations[0] must be a list of 2"},
                    wrong{"operations", R"([["h2d", 2]])",
                          "operations[0][1] must be a whole number below the 2 items, and is 2"},
                    wrong{"operations", R"([["h2d", 0, 0]])", "operations[0] must be a list of 2"},
                    wrong{"operations", R"([["storage_read", 0]])", "operations[0] must be a list of 3"},
                    wrong{"operations", R"([["storage_write", 0, 4294967296]])", "operations[0][2]"},
                    wrong{"operations", R"([["drop", 0, "dh"]])", "operations[0][2] must be one of d, h and s"},
                    wrong{"operations", R"([["drop", 0, ""]])", "operations[0][2]"},
                    wrong{"operations", R"([["jump", 0]])", R"(operations[0][0] must be step, drop, h2d, d2h)"}));

TEST(ScheduleJson, MessagesNameTheFileAndTheLine) {
  test::expect_refused([](const std::string& text) { static_cast<void>(read(text)); }, written(small()) + "\n{}\n",
                       "plans.jsonl:3: the schedule's forebay_schedule is missing");
  EXPECT_THROW(read(R"({"forebay_schedule": 2})"), unsupported_error);
}

TEST(ScheduleJson, RefusesToWriteWhatCouldNotBeReadBack) {
  const auto refused = [](auto&& spoil, const char* named) {
    saved_schedule s = small();
    spoil(s);
    test::expect_refused([&](const std::string&) { written(s); }, "", named);
  };
  refused([](saved_schedule& s) { s.steady.stored_on.pop_back(); }, "the schedule's stored_on");
  refused([](saved_schedule& s) { s.steady.operations[2].index = 2; }, "operations[2][1]");
  refused([](saved_schedule& s) { s.steady.operations[6].gone = copies::none; }, "operations[6][2]");
  refused([](saved_schedule& s) { s.steady.operations[0].over = static_cast<link>(9); }, "operations[0][0]");
  refused([](saved_schedule& s) { s.steady.at_start[1] = static_cast<copies>(9); }, "at_start");
}

TEST(ScheduleJson, AFailedStreamIsAnError) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_schedule(out, small()), error);
  std::istringstream in;
  in.setstate(std::ios::badbit);
  EXPECT_THROW(static_cast<void>(read_schedules(in)), error);
}

TEST(SavedSchedule, IsForItsTraceAndMachineWhateverTheDurations) {
  std::mt19937 random(1);
  const trace t = test::random_trace(random, {});
  const machine m = test::random_machine(random, t, true);
  schedule s;
  s.at_start.assign(t.item_bytes.size(), copies::storage);
  s.stored_on.assign(t.item_bytes.size(), 0);
  const saved_schedule kept = read(written(saved(s, t, m))).at(0);
  EXPECT_TRUE(is_for(kept, t, m));
  trace other = t;
  other.steps[0].seconds += 1;
  other.steps[0].phase = "warm-up";
  EXPECT_TRUE(is_for(kept, other, m));
  other.item_bytes[0] += 1;
  EXPECT_FALSE(is_for(kept, other, m));
  machine faster = m;
  faster.h2d_rate *= 2;
  EXPECT_FALSE(is_for(kept, t, faster));
  saved_schedule cut = kept;
  cut.steady.at_start.pop_back();
  EXPECT_FALSE(is_for(cut, t, m));
  EXPECT_THROW(static_cast<void>(saved(cut.steady, t, m)), usage_error);
}

}  // namespace
}  // namespace forebay::plan
