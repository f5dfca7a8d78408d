// Several storage paths under an engine: one that fails for writing, one that is slow, and the same numbers throughout.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/testing/io_faults.hpp>
#include <forebay/testing/rate_limited.hpp>

#include "small_engine.hpp"

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::fault_trigger;
using ::testing::HasSubstr;
using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

constexpr std::uint64_t floats = 40'000;  // three chunks, the last one odd
constexpr std::uint32_t layers = 8;

class storage_paths : public ::testing::TestWithParam<io::backend_kind> {
 protected:
  void open(io::interceptor& interceptor, std::size_t paths) {
    engine_options o = small_options(2 * 163'840, 3 * 163'840 + 2 * 64_KiB);
    for (std::size_t i = 0; i < paths; ++i) {
      o.storage.push_back({.directory = directory_of(i), .capacity = 8_MiB});
    }
    o.io.kind = GetParam();
    o.io.faults = &interceptor;
    e.emplace(std::move(o));
    order steps;
    for (std::uint32_t i = 0; i < layers; ++i) {
      steps.step("s" + std::to_string(i), {writes(add_floats(*e, "layer" + std::to_string(i), floats))});
    }
    e->set_order(steps);
    for (const tensor_id t : e->tensors()) {
      e->write<float>(t, ramp(floats, static_cast<float>(t.index)));
    }
  }
  void run(std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i, ++done) {
      iteration it = e->begin(done);
      for (std::uint32_t s = 0; s < layers; ++s) {
        const lease l = it.acquire(step_id{s, 0}, e->compute_stream());
        e->compute_stream().launch([data = l.data<float>(e->tensors()[s])] { data.back() += 1.0F; });
      }
      it.finish();
    }
  }
  void expect_right() {
    for (const tensor_id t : e->tensors()) {
      std::vector<float> expected = ramp(floats, static_cast<float>(t.index));
      expected.back() += static_cast<float>(done);
      EXPECT_EQ(contents(*e, t), expected);
    }
  }
  [[nodiscard]] std::filesystem::path directory_of(std::size_t path) const {
    return directory.path() / ("path" + std::to_string(path));
  }

  scratch_directory directory;
  std::optional<testing::io_faults> faults;  // outlive the engine
  std::optional<testing::rate_limited> limits;
  std::optional<engine> e;
  std::uint64_t done = 0;
};

TEST_P(storage_paths, one_that_fails_for_writing_in_mid_run_changes_no_number) {
  for (const int error_number : {EIO, ENOSPC, EROFS}) {
    for (int path = 0; path < 3; ++path) {
      done = 0;
      e.reset();
      faults.emplace();
      open(*faults, 3);
      run(2);
      faults->fail(error_number, fault_trigger{4}, {io::operation_kind::write, -1, path});
      run(4);
      expect_right();
      const engine_report report = e->report();
      ASSERT_EQ(report.storage_paths.size(), 3U);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(report.storage_paths[static_cast<std::size_t>(i)].retired, i == path);
        EXPECT_EQ(report.storage_paths[static_cast<std::size_t>(i)].directory,
                  directory_of(static_cast<std::size_t>(i)));
      }
      EXPECT_GT(report.checksum_seconds, 0.0);
      EXPECT_THAT(report.degradations, Contains(AllOf(HasSubstr(directory_of(static_cast<std::size_t>(path)).string()),
                                                      HasSubstr(strerrorname_np(error_number)), HasSubstr("retired"))))
          << path;
    }
  }
}

TEST_P(storage_paths, all_that_fail_for_writing_are_one_typed_error) {
  faults.emplace();
  open(*faults, 2);
  run(2);
  faults->fail(EROFS, {}, {io::operation_kind::write, -1, -1});
  try {
    run(4);
    ADD_FAILURE() << "no failure";
  } catch (const io_error& failure) {
    EXPECT_EQ(failure.error_number(), EROFS);
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("storage write"), HasSubstr("layer"), HasSubstr("path"),
                                      HasSubstr("wanted"), HasSubstr("EROFS")));
  }
}

TEST_P(storage_paths, of_unequal_and_changing_speed_change_no_number) {
  limits.emplace(std::vector<testing::path_limit>{{400'000'000, 400'000'000, 0}, {100'000'000, 100'000'000, 0}});
  open(*limits, 2);
  run(6);
  limits->change(0, {30'000'000, 30'000'000, 0});
  run(6);
  limits->change(1, {400'000'000, 0, 0});
  run(6);
  expect_right();
  EXPECT_LE(e->used().storage, e->capacity().storage);
}

INSTANTIATE_TEST_SUITE_P(kinds, storage_paths,
                         ::testing::Values(io::backend_kind::automatic, io::backend_kind::threads),
                         [](const ::testing::TestParamInfo<io::backend_kind>& tested) {
                           return tested.param == io::backend_kind::automatic ? "automatic" : "threads";
                         });

}  // namespace
}  // namespace forebay
