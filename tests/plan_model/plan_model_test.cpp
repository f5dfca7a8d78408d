// What the program says: its options, its sums beside closed forms, and that other machines and files change what they
// should.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <forebay/plan/plan_json.hpp>

#include "plan_model/answer.hpp"
#include "plan_model/run.hpp"

namespace plan_model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using words = std::vector<std::string>;

struct outcome {
  int code = 0;
  std::string out;
  std::string errors;
};

outcome run_with(const words& arguments) {
  std::ostringstream out;
  std::ostringstream errors;
  const int code = run(arguments, out, errors);
  return {code, out.str(), errors.str()};
}

class folder {
 public:
  folder() { std::filesystem::create_directories(path_); }
  ~folder() { std::filesystem::remove_all(path_); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  inline static int made_ = 0;
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("plan-model-" + std::to_string(getpid()) + "-" + std::to_string(++made_));
};

json answer_of(words arguments) {
  const folder f;
  arguments.insert(arguments.end(), {"--json", f.file("answer.json")});
  run_with(arguments);
  std::ifstream in(f.file("answer.json"));
  return json::parse(in);
}

// A model and a machine on which every tier is in use, and which are planned for in milliseconds.
const words small{"--layers", "8", "--width",      "512",   "--heads",  "8",     "--context", "256",
                  "--batch",  "4", "--vocabulary", "1000",  "--hbm",    "100MB", "--ram",     "500MB",
                  "--pcie",   "2", "--nvme",       "1/0.5", "--tflops", "1",     "--effort",  "0.02"};

words with(words base, const words& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

TEST(plan_model, wrong_options_are_refused_by_name_value_and_limit) {
  const std::vector<std::pair<words, std::vector<std::string>>> cases{
      {{"--layers", "0"}, {"--layers", "'0'", "from 1 to"}},
      {{"--heads", "7", "--width", "64"}, {"--heads", "'7'", "divisor of the width 64"}},
      {{"--hbm", "80"}, {"--hbm", "'80'", "from 1MB"}},
      {{"--hbm", "many"}, {"--hbm", "'many'", "a size"}},
      {{"--nvme", "0/1"}, {"--nvme"}},
      {{"--efficiency", "1.5"}, {"--efficiency", "'1.5'", "to 1"}},
      {{"--model", "8T"}, {"--model", "'8T'", "one of"}},
      {{"--batch", "1000000", "--layers", "9999", "--width", "1048576", "--heads", "1"}, {"small enough"}},
      {{"--trace", "x", "--layers", "3"}, {"--trace", "--layers"}},
  };
  for (const auto& [arguments, parts] : cases) {
    const outcome o = run_with(arguments);
    EXPECT_EQ(o.code, exit_usage) << arguments.front();
    for (const std::string& part : parts) {
      EXPECT_THAT(o.errors, HasSubstr(part));
    }
  }
  EXPECT_EQ(run_with({"--trace", "/nowhere/at all"}).code, exit_unfit);
  EXPECT_EQ(run_with({"--help"}).code, 0);
}

TEST(plan_model, parameters_and_bytes_are_those_of_the_closed_form) {
  constexpr std::uint64_t layers = 8;
  constexpr std::uint64_t h = 512;
  constexpr std::uint64_t vocabulary = 1000;
  constexpr std::uint64_t context = 256;
  // Four attention and eight MLP matrices with their biases, two norms; embedding, positions and the last norm.
  constexpr std::uint64_t expected = layers * (12 * h * h + 4 * h + 5 * h + 4 * h) + (vocabulary + context + 2) * h;
  const json a = answer_of(with(small, {"--no-what-if"}));
  EXPECT_EQ(a["model"]["parameters"], expected);
  for (const auto& [options, bytes] :
       std::map<words, std::uint64_t>{{{}, 2 + 2 + 12},                     // bf16 weight and gradient; master, m and v
                                      {{"--dtype", "fp32"}, 4 + 4 + 8},     // no master
                                      {{"--optimizer", "sgd"}, 2 + 2 + 4},  // a master alone
                                      {{"--optimizer", "sgd", "--dtype", "fp32"}, 4 + 4}}) {
    const question q = question_of(with_options(*parse_command_line(small, std::cout, std::cerr).chosen, options));
    const workload w = build_workload(q.what, q.on.speed, choose_granularity(q));
    std::uint64_t of_parameters = 0;
    for (std::size_t i = 0; i < w.item_names.size(); ++i) {
      const std::string& name = w.item_names[i];
      const bool counts =
          name.find("weights") != std::string::npos || name.find("state") != std::string::npos ||
          (name.find(" gradient") != std::string::npos && name.find("of activations") == std::string::npos);
      of_parameters += counts ? w.trace.item_bytes[i] : 0;
    }
    const std::uint64_t padding = w.item_names.size() * 4096;
    EXPECT_GE(of_parameters, expected * bytes) << ::testing::PrintToString(options);
    EXPECT_LE(of_parameters, expected * bytes + padding) << ::testing::PrintToString(options);
  }
}

TEST(plan_model, says_how_long_how_fast_and_what_binds) {
  const json a = answer_of(with(small, {"--no-what-if"}));
  ASSERT_TRUE(a["fits"]);
  const json& p = a["prediction"];
  const double seconds = p["seconds"];
  EXPECT_NEAR(p["tokens_per_second"].get<double>(), 4 * 256 / seconds, 1e-6 * 4 * 256 / seconds);
  EXPECT_GE(seconds, p["bound_seconds"].get<double>());
  double charged = 0.0;
  for (const json& c : p["charges"]) {
    charged += c["seconds"].get<double>();
  }
  EXPECT_NEAR(charged, p["bound_seconds"].get<double>(), 0.2 * charged);
  EXPECT_FALSE(p["binding"].get<std::string>().empty());
  for (const json& l : p["links"]) {
    EXPECT_LE(l["busy"].get<double>(), 1.0 + 1e-9) << l;
  }
  const outcome o = run_with(with(small, {"--no-what-if"}));
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("tokens/s"));
  EXPECT_THAT(o.out, HasSubstr("What binds"));
}

TEST(plan_model, better_machines_have_no_greater_bounds) {
  const json a = answer_of(small);
  const double now = a["prediction"]["bound_seconds"];
  std::size_t machines = 0;
  for (const json& row : a["what_if"]) {
    const std::string what = row["what"];
    if (what.find("update on") == std::string::npos && what.find("activations") == std::string::npos) {
      ASSERT_TRUE(row["fits"]) << what;
      EXPECT_LE(row["bound_seconds"].get<double>(), now * (1 + 1e-9)) << what;
      EXPECT_GE(row["seconds"].get<double>(), row["bound_seconds"].get<double>() * (1 - 1e-9)) << what;
      ++machines;
    }
  }
  EXPECT_GE(machines, 4U);
}

TEST(plan_model, what_does_not_fit_is_named_with_what_is_missing) {
  const outcome o = run_with(with(small, {"--hbm", "2MB", "--no-what-if"}));
  EXPECT_EQ(o.code, exit_unfit);
  EXPECT_THAT(o.out, HasSubstr("Does not fit"));
  EXPECT_THAT(o.out, HasSubstr("short"));
  const json a = answer_of(with(small, {"--no-nvme", "--ram", "100MB", "--no-what-if"}));
  EXPECT_FALSE(a["fits"]);
  bool all_at_once = false;
  for (const json& s : a["unfit"]["shortages"]) {
    EXPECT_GT(s["needs"].get<std::uint64_t>(), s["has"].get<std::uint64_t>());
    all_at_once = all_at_once || s["tier"] == "device and host";
  }
  EXPECT_TRUE(all_at_once);
}

TEST(plan_model, a_recorded_order_gives_the_answer_of_the_same_workload) {
  const folder f;
  const question q = question_of(*parse_command_line(small, std::cout, std::cerr).chosen);
  const workload w = build_workload(q.what, q.on.speed, choose_granularity(q));
  std::ofstream(f.file("order.json")) << [&] {
    std::ostringstream text;
    forebay::plan::write_trace(text, w.trace);
    return text.str();
  }();
  const words machine(small.begin() + 12, small.end());
  const json recorded = answer_of(with(machine, {"--trace", f.file("order.json")}));
  const json modelled = answer_of(with(small, {"--no-what-if"}));
  ASSERT_TRUE(recorded["fits"]);
  EXPECT_EQ(recorded["prediction"]["seconds"], modelled["prediction"]["seconds"]);
  EXPECT_EQ(recorded["prediction"]["bound_seconds"], modelled["prediction"]["bound_seconds"]);
  EXPECT_TRUE(recorded["prediction"]["tokens_per_second"].is_null());
  EXPECT_EQ(recorded["order"]["steps"], w.trace.steps.size());
  EXPECT_GE(recorded["what_if"].size(), 3U);
  std::ofstream(f.file("broken.json")) << R"({"forebay_trace": 1, "item_bytes": [4096], "steps": [{"where": "moon"}]})";
  const outcome o = run_with({"--trace", f.file("broken.json")});
  EXPECT_EQ(o.code, exit_usage);
  EXPECT_THAT(o.errors, HasSubstr("broken.json"));
  EXPECT_THAT(o.errors, HasSubstr("where"));
}

TEST(plan_model, a_timeline_has_every_lane_in_order) {
  const folder f;
  ASSERT_EQ(run_with(with(small, {"--no-what-if", "--timeline", f.file("t.json")})).code, 0);
  std::ifstream in(f.file("t.json"));
  const json trace = json::parse(in);
  std::map<int, std::vector<std::pair<double, double>>> lanes;
  for (const json& e : trace.contains("traceEvents") ? trace["traceEvents"] : trace) {
    if (e["ph"] == "X") {
      lanes[e["tid"].get<int>()].emplace_back(e["ts"].get<double>(), e["ts"].get<double>() + e["dur"].get<double>());
    }
  }
  EXPECT_GE(lanes.size(), 5U);
  for (auto& [lane, slices] : lanes) {
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i) {
      EXPECT_GE(slices[i].first, slices[i - 1].second - 0.01) << lane;  // microseconds
    }
  }
}

}  // namespace
}  // namespace plan_model
