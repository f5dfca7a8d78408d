// Faults of storage that users of offloading systems have met, each as a small program that would show it here.
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <forebay/testing/io_faults.hpp>

#include "../io/child_process.hpp"
#include "campaign_layers.hpp"
#include "small_engine.hpp"

namespace forebay {
namespace {

using campaign::layers;
using io_test::child_result;
using io_test::child_test;
using io_test::run_command;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::io_faults;
using testing::parse_fault_script;
using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;
using namespace std::chrono_literals;

// A sanitizer's own memory is larger than what one test looks for.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FOREBAY_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FOREBAY_TEST_SANITIZED 1
#endif
#endif

engine_options options_for_layers(const scratch_directory& directory) {
  engine_options o = small_options(256_KiB, 192_KiB, &directory);
  o.chunk = 16_KiB;
  return o;
}

/// Runs the workload; its result must be that of plain memory. What the engine says about itself.
engine_report run_layers(engine_options o) {
  engine e(std::move(o));
  layers program;
  e.set_order(program.declare(e));
  program.run(e);
  EXPECT_EQ(program.difference(e), "");
  return e.report();
}

std::size_t lines_with(const std::vector<std::string>& lines, const std::string& part) {
  std::size_t n = 0;
  for (const std::string& line : lines) {
    n += line.find(part) != std::string::npos ? 1U : 0U;
  }
  return n;
}

class refused_ring_of_engine : public ::testing::TestWithParam<int> {};

// Containers refuse io_uring: the same bits through threads, and the real errno is named once.
TEST_P(refused_ring_of_engine, changes_no_bit_and_is_named_once) {
  const scratch_directory directory;
  io_faults faults;
  faults.refuse(io::interceptor::service::ring, GetParam());
  engine_options o = options_for_layers(directory);
  faults.install(o.io);
  const engine_report report = run_layers(std::move(o));
  EXPECT_EQ(report.io_backend, "threads");
  EXPECT_EQ(lines_with(report.degradations, describe_errno(GetParam())), 1U);
}

INSTANTIATE_TEST_SUITE_P(errors, refused_ring_of_engine, ::testing::Values(EPERM, ENOSYS, EACCES, ENOMEM),
                         [](const auto& error) { return std::string(strerrorname_np(error.param)); });

/// Says what it runs on; the case below runs it with little lockable memory.
TEST(storage_case_here, runs_layers) {
  const scratch_directory directory;
  const engine_report report = run_layers(options_for_layers(directory));
  std::printf("backend: %s\n", report.io_backend.c_str());
  for (const std::string& line : report.degradations) {
    std::printf("degraded: %s\n", line.c_str());
  }
}

// Registration fails although memory is free: the run completes unregistered, with the limit and the need said once.
TEST(storage_cases, little_lockable_memory_changes_no_bit_and_is_said_once) {
  const std::string drop = ::geteuid() == 0 ? " setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock" : "";
  const std::string limited = "prlimit --memlock=65536:65536" + drop;
  if (run_command(limited + " true").status != 0) {
    GTEST_SKIP() << "prlimit or setpriv is missing";
  }
  const child_result child = run_command(child_test(limited, "storage_case_here.runs_layers"));
  EXPECT_EQ(child.status, 0) << child.output;
  if (child.output.find("backend: io_uring") == std::string::npos) {
    GTEST_SKIP() << "the kernel refuses io_uring altogether";
  }
  const std::size_t said = child.output.find("RLIMIT_MEMLOCK");
  EXPECT_NE(said, std::string::npos) << child.output;
  EXPECT_EQ(child.output.find("RLIMIT_MEMLOCK", said + 1), std::string::npos) << child.output;
  EXPECT_THAT(child.output, AllOf(HasSubstr("64 KiB"), HasSubstr("192 KiB")));
}

// The queue is full and the device is out of tags: one of four transfers is sent back, two may be under way at once.
TEST(storage_cases, a_busy_drive_behind_a_shallow_queue_finishes_with_exact_bytes) {
  for (const io::backend_kind kind : {io::backend_kind::automatic, io::backend_kind::threads}) {
    const scratch_directory directory;
    io_faults faults(parse_fault_script("fail EAGAIN every 4\nfail EBUSY from 3 every 7\nfail EINTR from 2 every 5"));
    engine_options o = options_for_layers(directory);
    o.io.kind = kind;
    o.io.depth = 2;
    faults.install(o.io);
    run_layers(std::move(o));
    EXPECT_GT(faults.seen().failed, 50U);
  }
}

class slow_drive : public ::testing::Test {
 protected:
  static constexpr std::uint32_t tensors = 32;
  static constexpr std::uint64_t floats = 16'384;  // one chunk each

  void SetUp() override {
    engine_options o = small_options(4 * 64_KiB, 34 * 64_KiB, &directory);
    faults.install(o.io);
    e.emplace(std::move(o));
    order steps;
    for (std::uint32_t i = 0; i < 2 * tensors; ++i) {
      steps.step("s" + std::to_string(i), {writes(add_floats(*e, "t" + std::to_string(i), floats))});
    }
    e->set_order(steps);
    for (const tensor_id t : e->tensors()) {
      e->write<float>(t, ramp(floats, static_cast<float>(t.index)));
    }
    faults.delay(1ms, 30ms);
  }

  scratch_directory directory;
  io_faults faults;
  std::optional<engine> e;
};

// The owner of the buffers goes while the kernel still fills them: user code throws in the middle of a step, or the
// engine is destroyed at once.
TEST_F(slow_drive, outlives_neither_an_exception_of_the_user_nor_the_engine) {
  try {
    iteration it = e->begin(0);
    const lease l = it.acquire(step_id{0, 0}, e->compute_stream());
    throw std::runtime_error("the user's own");
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "the user's own");
  }
  {
    iteration it = e->begin(1);
    for (std::uint32_t i = 0; i < 2 * tensors; ++i) {
      const lease l = it.acquire(step_id{i, 0}, e->compute_stream());
    }
    it.finish();
  }
  EXPECT_GT(faults.seen().delayed, 0U);  // both tiers together hold 38 of the 64 blocks
  e.reset();                             // reads ahead and writes behind are under way
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST_F(slow_drive, that_recovers_after_an_exception_has_lost_nothing) {
  try {
    iteration it = e->begin(0);
    const lease l = it.acquire(step_id{5, 0}, e->compute_stream());
    throw std::runtime_error("the user's own");
  } catch (const std::runtime_error&) {
  }
  faults.clear();
  for (const tensor_id t : e->tensors()) {
    EXPECT_EQ(contents(*e, t), ramp(floats, static_cast<float>(t.index)));
  }
}

// A disk that fills up in mid-run: one path alone is an error with its name; beside another it is left out.
TEST(storage_cases, a_disk_that_fills_up_in_mid_run_is_left_out_or_an_error) {
  for (const bool has_another : {false, true}) {
    const scratch_directory directory;
    io_faults faults(parse_fault_script("fail ENOSPC write path 0 from 30"));
    engine_options o = options_for_layers(directory);
    if (has_another) {
      o.storage.push_back({.directory = directory.path() / "other"});
    }
    faults.install(o.io);
    if (has_another) {
      const engine_report report = run_layers(std::move(o));
      EXPECT_THAT(report.degradations,
                  Contains(AllOf(HasSubstr("ENOSPC"), HasSubstr((directory.path() / "store").string()))));
    } else {
      try {
        run_layers(std::move(o));
        ADD_FAILURE() << "a full disk was not noticed";
      } catch (const io_error& full) {
        EXPECT_EQ(full.error_number(), ENOSPC);
        EXPECT_THAT(full.what(), AllOf(HasSubstr("layer"), HasSubstr("storage"), HasSubstr("ENOSPC"),
                                       HasSubstr((directory.path() / "store").string())));
      }
    }
    EXPECT_GT(faults.seen().failed, 0U);
  }
}

#ifndef FOREBAY_TEST_SANITIZED
byte_count of_status(const char* key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    byte_count kib = 0;
    if (word == key && in >> kib) {
      return kib * 1024;
    }
  }
  return 0;
}

// "Everything on disk" must not pass through RAM as a whole, neither at the start nor later.
TEST(storage_cases, state_far_larger_than_the_host_tier_never_fills_the_memory) {
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak starts anew
  const byte_count before = of_status("VmRSS:");
  if (before == 0 || of_status("VmHWM:") > before + 16_MiB) {
    GTEST_SKIP() << "this kernel does not tell a peak that starts anew";
  }
  constexpr std::uint32_t tensors = 96;
  constexpr std::uint64_t floats = 1'048'576;  // 384 MiB in all
  constexpr byte_count host = 64_MiB;
  constexpr byte_count slack = 64_MiB;
  const scratch_directory directory;
  engine_options o = small_options(8_MiB, host, &directory);
  o.chunk = 1_MiB;
  o.staging_chunks = 8;
  engine e(std::move(o));
  order steps;
  for (std::uint32_t i = 0; i < tensors; ++i) {
    steps.step("s" + std::to_string(i), {writes(add_floats(e, "t" + std::to_string(i), floats))});
  }
  e.set_order(steps);
  std::vector<float> values = ramp(floats, 0.0F);
  for (const tensor_id t : e.tensors()) {
    values.back() = static_cast<float>(t.index);
    e.write<float>(t, values);
  }
  for (std::uint64_t n = 0; n < 3; ++n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < tensors; ++i) {
      const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
      e.compute_stream().launch([data = l.data<float>(e.tensors()[i])] { data.back() += 1.0F; });
    }
    it.finish();
  }
  EXPECT_LE(of_status("VmHWM:"), before + host + slack);
  EXPECT_EQ(contents(e, e.tensors().back()).back(), static_cast<float>(tensors - 1 + 3));
}

#endif

// Knobs that do nothing: whatever share of the tensors the host tier is given, from next to nothing to all, that much
// is kept there, to the block; and what the shares at both ends mean is what storage delivers in each iteration.
TEST(storage_cases, the_host_tiers_size_decides_what_is_kept_there) {
  constexpr std::uint32_t blocks = 40;
  constexpr byte_count block = 64_KiB;
  constexpr byte_count working = 6 * block;  // staging, and what is coming and going
  for (std::uint32_t tenth = 0; tenth <= 10; ++tenth) {
    const scratch_directory directory;
    const byte_count host = tenth * blocks / 10 * block + working;
    engine e(small_options(2 * block, host, &directory));
    order steps;
    for (std::uint32_t i = 0; i < blocks; ++i) {
      steps.step("s" + std::to_string(i), {reads(add_floats(e, "t" + std::to_string(i), block / 4))});
    }
    e.set_order(steps);
    for (const tensor_id t : e.tensors()) {
      e.write<float>(t, ramp(block / 4, 0.0F));
    }
    byte_count read = 0;
    for (std::uint64_t n = 0; n < 4; ++n) {
      iteration it = e.begin(n);
      for (std::uint32_t i = 0; i < blocks; ++i) {
        const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
      }
      read = it.finish().moved.storage_read;
    }
    EXPECT_EQ(e.report().capacity.host, host);
    EXPECT_LE(e.peak().host, host);
    EXPECT_GE(e.peak().host + block, std::min(host, blocks * block)) << tenth;
    if (host < blocks * block) {
      EXPECT_GT(read, 0U) << tenth;
    } else if (host >= (blocks + 2) * block) {  // staging included
      EXPECT_EQ(read, 0U) << tenth;
    }
    if (tenth == 0) {
      EXPECT_GE(read, (blocks - host / block - 2) * block);
    }
  }
}

// The same with schedules: what an iteration reads is what no tier has room for, to within the blocks that come and go.
TEST(storage_cases, a_schedule_reads_what_finds_no_room) {
  constexpr std::uint32_t blocks = 30;
  constexpr byte_count block = 64_KiB;
  byte_count before = blocks * block;
  for (const std::uint32_t room : {4U, 12U, 20U, 28U}) {  // blocks of the host tier
    const scratch_directory directory;
    engine_options o = small_options(2 * block, (room + 2) * block, &directory);  // two of them for staging
    o.planning = planning_policy::always;
    o.planning_effort = 0.05;
    engine e(std::move(o));
    order steps;
    for (std::uint32_t i = 0; i < blocks; ++i) {
      steps.step("s" + std::to_string(i), {reads(add_floats(e, "t" + std::to_string(i), block / 4))});
    }
    e.set_order(steps);
    for (const tensor_id t : e.tensors()) {
      e.write<float>(t, ramp(block / 4, 0.0F));
    }
    constexpr std::uint64_t iterations = 12;
    constexpr std::uint64_t counted = 6;  // an iteration may bring what the next one then need not
    byte_count read = 0;
    iteration_report r;
    for (std::uint64_t n = 0; n < iterations; ++n) {
      iteration it = e.begin(n);
      for (std::uint32_t i = 0; i < blocks; ++i) {
        const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
      }
      r = it.finish();
      read += n < iterations - counted ? 0 : r.moved.storage_read;
    }
    EXPECT_TRUE(r.planned) << room;
    read /= counted;
    const byte_count least = (blocks - 2 - room) * block;  // in the long run
    EXPECT_GE(read + block, least) << room;
    EXPECT_LE(read, least + 8 * block) << room;
    EXPECT_LE(read, before) << room;
    before = read;
  }
}

TEST(storage_cases, switches_have_the_effect_that_they_name) {
  const auto with = [](const char* script, auto set) {
    const scratch_directory directory;
    io_faults faults(parse_fault_script(script));
    engine_options o = options_for_layers(directory);
    set(o);
    faults.install(o.io);
    return run_layers(std::move(o));
  };
  EXPECT_EQ(with("", [](engine_options& o) { o.io.kind = io::backend_kind::threads; }).io_backend, "threads");
  EXPECT_THROW(with("flip chance 0.5", [](engine_options&) {}), corruption_error);
  EXPECT_THROW(with("refuse ring EPERM", [](engine_options& o) { o.io.kind = io::backend_kind::uring; }),
               unsupported_error);
}

}  // namespace
}  // namespace forebay
