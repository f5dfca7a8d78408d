#include "train_gpt/run.hpp"

#include <forebay/device/cuda_device.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <forebay/base/error.hpp>
#include <forebay/checkpoint/digest.hpp>
#include <forebay/checkpoint/safetensors.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "temporary_folder.hpp"
#include "train_gpt/tensors.hpp"

namespace train_gpt {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Runs in a folder of its own, the current one meanwhile.
class run_test : public testing::Test {
 protected:
  run_test() : before_(fs::current_path()) {
    fs::current_path(folder_.path());
    folder_.write("text/a", std::string(300, 'x') + "the quick brown fox jumps over the lazy dog");
    small_.data = {folder_.path() / "text"};
    small_.shape = {.layers = 1, .width = 16, .heads = 2, .context = 8, .batch = 2, .micro_batches = 2};
    small_.steps = 4;
    small_.device_memory = 8U << 20U;
    small_.host_memory = 8U << 20U;
  }
  ~run_test() override { fs::current_path(before_); }

  int run(const settings& s) { return train_gpt::run(s, out_, false, errors_); }

  static std::vector<nlohmann::json> lines_of(const fs::path& file) {
    std::vector<nlohmann::json> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

  [[nodiscard]] bool run_folder_left() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().starts_with("forebay-run-")) {
        return true;
      }
    }
    return false;
  }

  temporary_folder folder_;
  settings small_;
  std::ostringstream out_;
  std::ostringstream errors_;

 private:
  fs::path before_;
};

TEST_F(run_test, logs_every_step_and_a_summary) {
  settings s = small_;
  s.json = "log";
  ASSERT_EQ(run(s), 0);
  const std::vector<nlohmann::json> lines = lines_of("log");
  ASSERT_EQ(lines.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i].at("step"), i + 1);
    EXPECT_THAT(lines[i].at("loss_bits").get<std::string>(), testing::MatchesRegex("[0-9a-f]{8}"));
    for (const char* field : {"loss", "seconds", "stall_seconds", "misses", "device_peak_bytes", "host_peak_bytes",
                              "storage_read_bytes", "storage_written_bytes", "h2d_bytes", "d2h_bytes"}) {
      EXPECT_TRUE(lines[i].at(field).is_number()) << field;
    }
    EXPECT_GT(lines[i].at("seconds"), 0.0);
  }
  const nlohmann::json& summary = lines[4].at("summary");
  const std::uint64_t parameters = tensor_table(s.shape, forebay::dtype::f32).parameter_elements();
  EXPECT_EQ(summary.at("parameters"), parameters);
  EXPECT_EQ(summary.at("state_bytes"), parameters * 16);
  EXPECT_EQ(summary.at("device_capacity"), s.device_memory);
  EXPECT_EQ(summary.at("host_capacity"), s.host_memory);
  EXPECT_GT(summary.at("device_peak_bytes"), 0);
  EXPECT_LE(summary.at("device_peak_bytes"), s.device_memory);
  EXPECT_LE(summary.at("host_peak_bytes"), s.host_memory);
  EXPECT_GT(summary.at("tokens_per_second"), 0.0);
  EXPECT_THAT(summary.at("digest").get<std::string>(), testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(out_.str(), HasSubstr("step 4/4"));
  EXPECT_FALSE(run_folder_left());
}

TEST_F(run_test, resident_and_engine_log_the_same_numbers) {
  settings s = small_;
  s.json = "engine";
  ASSERT_EQ(run(s), 0);
  s.json = "resident";
  s.resident = true;
  ASSERT_EQ(run(s), 0);
  const std::vector<nlohmann::json> engine = lines_of("engine");
  const std::vector<nlohmann::json> resident = lines_of("resident");
  ASSERT_EQ(engine.size(), resident.size());
  for (std::size_t i = 0; i < s.steps; ++i) {
    EXPECT_EQ(engine[i].at("loss_bits"), resident[i].at("loss_bits"));
    for (const char* field : {"stall_seconds", "misses", "device_peak_bytes", "host_peak_bytes", "storage_read_bytes",
                              "storage_written_bytes", "h2d_bytes", "d2h_bytes"}) {
      EXPECT_EQ(resident[i].at(field), 0) << field;
    }
  }
  EXPECT_EQ(engine.back().at("summary").at("digest"), resident.back().at("summary").at("digest"));
}

TEST_F(run_test, recomputing_changes_no_number_and_is_logged) {
  const auto summary = [&](forebay::recompute_policy policy, bool resident) {
    settings s = small_;
    s.shape.layers = 3;
    s.steps = 1;
    s.json = "log";
    s.recompute = policy;
    s.resident = resident;
    EXPECT_EQ(run(s), 0);
    const std::vector<nlohmann::json> lines = lines_of("log");
    EXPECT_EQ(lines[s.steps - 1].at("recomputations"), lines.back().at("summary").at("recomputations"));
    return lines.back().at("summary");
  };
  using forebay::recompute_policy;
  const nlohmann::json resident = summary(recompute_policy::automatic, true);
  for (const recompute_policy policy : {recompute_policy::none, recompute_policy::all, recompute_policy::automatic}) {
    const nlohmann::json engine = summary(policy, false);
    EXPECT_EQ(engine.at("digest"), resident.at("digest"));
    EXPECT_EQ(engine.at("recomputable"), 6) << "three layers in each of two micro-batches";
    // The automatic choice knows nothing before the first step.
    EXPECT_EQ(engine.at("recomputations"), policy == recompute_policy::all ? 6 : 0);
  }
}

TEST_F(run_test, seed_changes_the_numbers_and_repeating_does_not) {
  settings s = small_;
  s.resident = true;
  const auto digest = [&](std::uint64_t seed) {
    s.seed = seed;
    s.json = "log";
    EXPECT_EQ(run(s), 0);
    return lines_of("log").back().at("summary").at("digest").get<std::string>();
  };
  const std::string first = digest(1);
  EXPECT_EQ(first, digest(1));
  EXPECT_NE(first, digest(2));
}

TEST_F(run_test, dump_holds_weights_and_moments_as_the_digest_says) {
  for (const bool resident : {false, true}) {
    settings s = small_;
    s.resident = resident;
    s.json = "log";
    s.dump = "state.safetensors";
    ASSERT_EQ(run(s), 0);
    const forebay::safetensors_file file("state.safetensors");
    const tensor_table table(s.shape, forebay::dtype::f32);
    ASSERT_EQ(file.entries().size(), 3 * table.parameters().size());
    for (tensor_index p = 0; p < table.parameters().size(); ++p) {
      for (const char* suffix : {"", ".m", ".v"}) {
        const forebay::safetensors_entry* entry = file.find(table.specs()[p].name + suffix);
        ASSERT_NE(entry, nullptr) << table.specs()[p].name << suffix;
        EXPECT_EQ(entry->type, forebay::dtype::f32);
        EXPECT_EQ(entry->shape, table.specs()[p].shape);
      }
    }
    std::vector<forebay::tensor_source> sources;
    for (const forebay::safetensors_entry& entry : file.entries()) {
      sources.push_back(file.source(entry));
    }
    EXPECT_EQ(forebay::digest(sources), lines_of("log").back().at("summary").at("digest").get<std::string>());
  }
}

TEST_F(run_test, trace_has_the_lanes_of_what_was_done) {
  settings s = small_;
  s.trace = "trace";
  ASSERT_EQ(run(s), 0);
  std::ifstream in("trace");
  const nlohmann::json trace = nlohmann::json::parse(in);
  std::set<std::string> lanes;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name") {
      lanes.insert(event.at("args").at("name"));
    }
  }
  EXPECT_TRUE(lanes.count("compute") == 1);
  EXPECT_TRUE(lanes.count("optimizer") == 1);
}

TEST_F(run_test, quiet_says_nothing) {
  settings s = small_;
  s.quiet = true;
  ASSERT_EQ(run(s), 0);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(errors_.str(), "");
}

TEST_F(run_test, refuses_cuda_and_says_why) {
#ifdef TRAIN_GPT_HAS_CUDA
  if (forebay::cuda_device_count() > 0) {
    GTEST_SKIP() << "there is a CUDA device here";
  }
#endif
  settings s = small_;
  s.device = device_kind::cuda;
  EXPECT_THAT([&] { run(s); }, testing::ThrowsMessage<forebay::unsupported_error>(HasSubstr("--device cuda")));
}

TEST_F(run_test, too_little_memory_is_refused_before_training) {
  settings s = small_;
  s.device_memory = 4096;
  s.json = "log";
  EXPECT_THROW(run(s), forebay::capacity_error);
  EXPECT_TRUE(lines_of("log").empty());
  EXPECT_FALSE(run_folder_left());
}

TEST_F(run_test, names_a_log_that_cannot_be_written) {
  settings s = small_;
  s.json = "no/such/folder/log";
  EXPECT_THAT([&] { run(s); }, testing::ThrowsMessage<forebay::io_error>(HasSubstr("no/such/folder/log")));
}

/// Sends a signal to this process when a text appears.
class signalling_buffer final : public std::streambuf {
 public:
  signalling_buffer(std::string at, int signal) : at_(std::move(at)), signal_(signal) {}

 protected:
  int_type overflow(int_type c) override {
    text_.push_back(static_cast<char>(c));
    if (text_.ends_with(at_)) {
      std::raise(signal_);
    }
    return c;
  }

 private:
  std::string text_;
  std::string at_;
  int signal_;
};

TEST_F(run_test, a_signal_ends_it_cleanly) {
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    for (const bool resident : {false, true}) {
      settings s = small_;
      s.steps = 1'000'000;
      s.resident = resident;
      signalling_buffer buffer("2/1000000", signal);
      std::ostream out(&buffer);
      EXPECT_EQ(train_gpt::run(s, out, false, errors_), code);
      EXPECT_FALSE(run_folder_left());
    }
  }
}

TEST_F(run_test, leaves_the_folder_of_a_named_storage_in_place) {
  settings s = small_;
  s.storage = {folder_.path() / "mine"};
  ASSERT_EQ(run(s), 0);
  EXPECT_FALSE(run_folder_left());
  EXPECT_TRUE(!fs::exists("mine") || fs::is_empty("mine"));
}

}  // namespace
}  // namespace train_gpt
