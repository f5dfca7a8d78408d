#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/plan_json.hpp>

#include "instances.hpp"
#include "json_mutations.hpp"

namespace forebay::plan {
namespace {

std::string written(const trace& t) {
  std::ostringstream out;
  write_trace(out, t);
  return out.str();
}

std::vector<trace> read(const std::string& text) {
  std::istringstream in(text);
  return read_traces(in, "traces.jsonl");
}

bool same(const trace_step& a, const trace_step& b) {
  return a.where == b.where && a.seconds == b.seconds && a.workspace == b.workspace && a.phase == b.phase &&
         std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(), b.accesses.end(),
                    [](const item_access& x, const item_access& y) { return x.item == y.item && x.how == y.how; });
}

bool same(const trace& a, const trace& b) {
  return a.item_bytes == b.item_bytes && std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                                                    [](const auto& x, const auto& y) { return same(x, y); });
}

trace small() {
  return {{4096, ~byte_count{0}},
          {{place::host, 1.0 / 3, 256, "for\"ward\n", {{1, uses::read | uses::write}, {0, uses::create}}},
           {place::device, 0.0, 0, "", {}}}};
}

uses any_uses() {
  const auto bits = *rc::gen::inRange<int>(1, 16);
  const uses how = static_cast<uses>(bits);
  return has(how, uses::read) && has(how, uses::create) ? uses::create : how;
}

trace any_trace() {
  trace t;
  t.item_bytes = *rc::gen::arbitrary<std::vector<byte_count>>();
  t.steps.resize(*rc::gen::inRange<std::size_t>(0, 6));
  for (trace_step& s : t.steps) {
    s.where = *rc::gen::element(place::device, place::host);
    s.seconds = std::abs(*rc::gen::arbitrary<double>());
    s.workspace = *rc::gen::element(byte_count{0}, byte_count{1}, ~byte_count{0});
    s.phase = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    for (item_index i = 0; i < t.item_bytes.size(); ++i) {
      if (*rc::gen::arbitrary<bool>()) {
        s.accesses.insert(
            s.accesses.begin() + static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, s.accesses.size() + 1)),
            {i, any_uses()});
      }
    }
  }
  return t;
}

RC_GTEST_PROP(TraceJson, ReadsBackWhatItWrote, ()) {
  const trace t = any_trace();
  const std::string line = written(t);
  RC_ASSERT(line.find('\n') == line.size() - 1);
  const std::vector<trace> again = read(line);
  RC_ASSERT(again.size() == 1U);
  RC_ASSERT(same(again[0], t));
}

TEST(TraceJson, AFileHoldsSeveral) {
  const std::vector<instance> all = read_instances(FOREBAY_INSTANCES, "random");
  std::string text = "\n";
  for (const instance& i : all) {
    text += written(i.trace) + " \r\n";
  }
  const std::vector<trace> again = read(text);
  ASSERT_EQ(again.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(same(again[i], all[i].trace)) << i;
  }
  EXPECT_TRUE(read("").empty());
}

TEST(TraceJson, IsWhatTheHeaderSays) {
  const trace t{{4096, 8192}, {{place::device, 0.5, 256, "forward", {{0, uses::read}, {1, uses::read | uses::write}}}}};
  const std::string text = R"({"forebay_trace": 1, "item_bytes": [4096, 8192],
      "steps": [{"where": "device", "seconds": 0.5, "workspace_bytes": 256, "phase": "forward",
                 "accesses": [[0, "r"], [1, "rw"]]}]})";
  EXPECT_EQ(nlohmann::json::parse(written(t)), nlohmann::json::parse(text));
  EXPECT_EQ(nlohmann::json::parse(written(small())).at("steps").at(1).size(), 3U);  // no workspace, no phase
}

TEST(TraceJson, EveryWrongFieldIsNamed) {
  test::expect_every_mutation_named([](const std::string& text) { static_cast<void>(read(text)); },
                                    nlohmann::json::parse(written(small())), {"workspace_bytes", "phase"});
}

struct wrong {
  const char* text;
  const char* named;
};

class TraceJsonRefuses : public testing::TestWithParam<wrong> {};

TEST_P(TraceJsonRefuses, AndNamesTheFieldAndTheLimit) {
  test::expect_refused([](const std::string& text) { static_cast<void>(read(text)); }, GetParam().text,
                       GetParam().named);
}

#define ONE_STEP(accesses)                                                                                        \
  R"({"forebay_trace": 1, "item_bytes": [5, 6], "steps": [{"where": "host", "seconds": 1, "accesses": )" accesses \
  "}]"                                                                                                            \
  "}"

INSTANTIATE_TEST_SUITE_P(
    Texts, TraceJsonRefuses,
    testing::Values(
        wrong{"[]", "the trace's description must be an object, and is a list of 0"}, wrong{"{}", "forebay_trace"},
        wrong{R"({"forebay_schedule": 1})", "forebay_schedule is not known"},
        wrong{R"({"forebay_trace": 2, "item_bytes": [], "steps": []})", "forebay_trace is 2; this library reads"},
        wrong{R"({"forebay_trace": 1, "item_bytes": [18446744073709551616], "steps": []})",
              "item_bytes[0] must be a whole number up to 18446744073709551615, and is 1.8446744073709552e+19"},
        wrong{R"({"forebay_trace": 1, "item_bytes": [], "steps": [{"where": "gpu", "seconds": 1, "accesses": []}]})",
              R"(steps[0].where must be "device" or "host", and is "gpu")"},
        wrong{R"({"forebay_trace": 1, "item_bytes": [], "steps": [{"where": "host", "seconds": 1e999}]})", "not JSON"},
        wrong{ONE_STEP(R"([[0, "r"], [2, "r"]])"),
              "steps[0].accesses[1][0] must be a whole number below the 2 items, and is 2"},
        wrong{ONE_STEP(R"([[0, "r"], [1, "r"], [0, "w"]])"), "steps[0].accesses[2][0]"},
        wrong{ONE_STEP(R"([[0, "r", 1]])"), "steps[0].accesses[0] must be a list of 2"},
        wrong{ONE_STEP(R"([[0, ""]])"), "steps[0].accesses[0][1]"},
        wrong{ONE_STEP(R"([[0, "rr"]])"), R"(steps[0].accesses[0][1] must be letters of r, w, c and f, each once)"},
        wrong{ONE_STEP(R"([[0, "cr"]])"), "not r with c"}, wrong{ONE_STEP(R"([[0, "x"]])"), R"(and is "x")"}));

TEST(TraceJson, MessagesNameTheFileAndTheLineAndAreShort) {
  const auto reader = [](const std::string& text) { static_cast<void>(read(text)); };
  const std::string good = written(small());
  test::expect_refused(reader, good + "\n" + good + "{}\n", "traces.jsonl:4: the trace's forebay_trace is missing");
  test::expect_refused(reader, good + "{\n" + good, "traces.jsonl:2: the trace is not JSON");
  // neither a text of a megabyte nor nesting as deep ends up in a message, or on the stack
  const std::string text(1U << 20U, 'x');
  const std::string deep = std::string(1U << 20U, '[') + std::string(1U << 20U, ']');
  for (const std::string& value : {'"' + text + '"', deep}) {
    try {
      reader(R"({"forebay_trace": 1, "item_bytes": )" + value + "}");
      FAIL();
    } catch (const usage_error& e) {
      EXPECT_LT(std::string(e.what()).size(), 200U);
    }
  }
}

TEST(TraceJson, OtherVersionsAreUnsupported) {
  EXPECT_THROW(read(R"({"forebay_trace": 2, "item_bytes": [], "steps": []})"), unsupported_error);
}

TEST(TraceJson, RefusesToWriteWhatCouldNotBeReadBack) {
  const auto refused = [](auto&& spoil, const char* named) {
    trace t = small();
    spoil(t);
    test::expect_refused([&](const std::string&) { written(t); }, "", named);
  };
  refused([](trace& t) { t.steps[0].seconds = -1; }, "the trace's steps[0].seconds");
  refused([](trace& t) { t.steps[1].seconds = std::numeric_limits<double>::infinity(); }, "steps[1].seconds");
  refused([](trace& t) { t.steps[0].accesses[1].item = 2; }, "steps[0].accesses[1][0]");
  refused([](trace& t) { t.steps[0].accesses[1].item = 1; }, "steps[0].accesses[1][0]");
  refused([](trace& t) { t.steps[0].accesses[0].how = uses::none; }, "steps[0].accesses[0][1]");
  refused([](trace& t) { t.steps[0].accesses[0].how = static_cast<uses>(33); }, "not known");
}

TEST(TraceJson, AFailedStreamIsAnError) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_trace(out, small()), error);
  std::istringstream in;
  in.setstate(std::ios::badbit);
  EXPECT_THROW(static_cast<void>(read_traces(in)), error);
}

}  // namespace
}  // namespace forebay::plan
