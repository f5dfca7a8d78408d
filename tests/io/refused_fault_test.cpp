// What the kernel refuses: each case runs the plain tests below in a child process with a system call made to fail.
#include <cstdio>

#include <gmock/gmock.h>

#include "child_process.hpp"
#include "io_fixture.hpp"

namespace forebay {
namespace {

using io::operation_kind;
using io_test::batch;
using io_test::can_trace;
using io_test::child_result;
using io_test::child_test;
using io_test::guarded_buffer;
using io_test::inject;
using io_test::random_bytes;
using io_test::run_command;
using ::testing::HasSubstr;
using ::testing::Not;

/// Moves bytes through `automatic` and says on standard output what it got.
void round_trip(unsigned depth) {
  io_test::scratch_directory directory;
  const auto io = io::make_backend({.depth = depth});
  constexpr std::size_t count = 64;
  constexpr byte_count bytes = 64_KiB;
  const int file = ::open((directory.path() / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  guarded_buffer memory(count * bytes);
  io->register_memory({memory.data(), memory.size()});
  const std::vector<int> files{file};
  io->register_files(files);
  const std::vector<std::byte> content = random_bytes(count * bytes, 9);
  std::memcpy(memory.data(), content.data(), content.size());
  for (const operation_kind kind : {operation_kind::write, operation_kind::read}) {
    batch ops(*io);
    for (std::size_t i = 0; i < count; ++i) {
      ops.start(kind, file, i * bytes, memory.data() + i * bytes, bytes);
    }
    ops.wait();
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(ops.of(i).bytes, bytes) << describe_errno(ops.of(i).error_number);
    }
    if (kind == operation_kind::write) {
      std::memset(memory.data(), 0, memory.size());
    }
  }
  EXPECT_EQ(std::memcmp(memory.data(), content.data(), content.size()), 0);
  std::printf("backend: %s\n", io->name().c_str());
  for (const std::string& line : io->degradations()) {
    std::printf("degraded: %s\n", line.c_str());
  }
  ::close(file);
}

TEST(whatever_there_is, moves_bytes) { round_trip(64); }
TEST(whatever_there_is, moves_bytes_two_at_a_time) { round_trip(2); }

constexpr const char* plain = "whatever_there_is.moves_bytes";
constexpr const char* shallow = "whatever_there_is.moves_bytes_two_at_a_time";

bool has_uring() {
  try {
    return io::make_backend({.kind = io::backend_kind::uring}) != nullptr;
  } catch (const unsupported_error&) {
    return false;
  }
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

class refused : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!can_trace()) {
      GTEST_SKIP() << "strace is missing, or may not trace here";
    }
  }
};

TEST_P(refused, ring_setup_falls_back_to_threads_and_names_the_error_once) {
  const child_result child =
      run_command(child_test(inject("io_uring_setup", std::string("error=") + GetParam()), plain));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: threads"));
  EXPECT_EQ(count_of(child.output, GetParam()), 1U) << child.output;
}

INSTANTIATE_TEST_SUITE_P(errors, refused, ::testing::Values("EPERM", "ENOSYS", "ENOMEM", "EACCES"));

class refused_ring : public refused {
 protected:
  void SetUp() override {
    refused::SetUp();
    if (!has_uring()) {
      GTEST_SKIP() << "the kernel refuses io_uring altogether";
    }
  }
};

TEST_P(refused_ring, submission_now_and_then_is_repeated) {
  for (const char* test : {plain, shallow}) {
    const std::string what = std::string("error=") + GetParam() + ":when=1+3";
    const child_result child = run_command(child_test(inject("io_uring_enter", what), test));
    EXPECT_EQ(child.status, 0) << child.output;
    EXPECT_THAT(child.output, HasSubstr("backend: io_uring"));
    EXPECT_THAT(child.output, Not(HasSubstr("degraded"))) << child.output;
  }
}

INSTANTIATE_TEST_SUITE_P(errors, refused_ring, ::testing::Values("EAGAIN", "EBUSY", "EINTR"));

class refused_service : public refused_ring {};

TEST_P(refused_service, enter_for_good_falls_back_to_threads) {
  const child_result child =
      run_command(child_test(inject("io_uring_enter", std::string("error=") + GetParam()), plain));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: threads"));
  EXPECT_THAT(child.output, HasSubstr(GetParam()));
}

TEST_P(refused_service, registration_goes_on_unregistered) {
  const child_result child =
      run_command(child_test(inject("io_uring_register", std::string("error=") + GetParam()), plain));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: io_uring"));
  EXPECT_EQ(count_of(child.output, "degraded: "), 2U) << child.output;  // buffers and files
  EXPECT_EQ(count_of(child.output, GetParam()), 2U) << child.output;
}

INSTANTIATE_TEST_SUITE_P(errors, refused_service, ::testing::Values("EPERM", "ENOSYS"));

// Old kernels do not know the flags; a first EINVAL stands for each step down.
TEST(refused_flags, are_left_out_one_set_after_the_other) {
  if (!can_trace() || !has_uring()) {
    GTEST_SKIP() << "strace or io_uring is missing, or may not be used here";
  }
  for (const char* refusals : {"1", "1..2", "1..3"}) {
    const std::string what = std::string("error=EINVAL:when=") + refusals;
    const child_result child = run_command(child_test(inject("io_uring_setup", what), plain));
    EXPECT_EQ(child.status, 0) << child.output;
    EXPECT_THAT(child.output, HasSubstr("backend: io_uring"));
  }
  const child_result child = run_command(child_test(inject("io_uring_setup", "error=EINVAL:when=1..4"), plain));
  EXPECT_THAT(child.output, HasSubstr("backend: threads"));  // there are four sets
  EXPECT_THAT(child.output, HasSubstr("EINVAL"));
}

/// The test `plain` with a limit on locked memory, and without the right to pass over it.
child_result run_with_locked_bytes(byte_count limit) {
  const std::string drop = ::geteuid() == 0 ? "setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock" : "";
  const std::string bytes = std::to_string(limit);
  return run_command(child_test("prlimit --memlock=" + bytes + ":" + bytes + " " + drop, plain));
}

class refused_memory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_command("setpriv --version").status != 0 || !has_uring()) {
      GTEST_SKIP() << "setpriv or io_uring is missing";
    }
  }
};

TEST_F(refused_memory, is_used_unregistered_and_the_limit_and_the_need_are_said_once) {
  const child_result child = run_with_locked_bytes(64_KiB);
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: io_uring"));
  EXPECT_EQ(count_of(child.output, "degraded: "), 1U) << child.output;
  EXPECT_THAT(child.output, HasSubstr("ENOMEM"));
  EXPECT_THAT(child.output, HasSubstr("64 KiB"));  // the limit
  EXPECT_THAT(child.output, HasSubstr("4 MiB"));   // the need
}

TEST_F(refused_memory, is_registered_as_far_as_the_limit_goes) {
  const child_result child = run_with_locked_bytes(2_MiB);
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_EQ(count_of(child.output, "degraded: "), 1U) << child.output;
  EXPECT_THAT(child.output, ::testing::ContainsRegex("; 1(\\.[0-9]+)? MiB are registered"));  // most of the 2
}

TEST_F(refused_memory, is_registered_where_the_limit_allows_all) {
  const child_result child = run_with_locked_bytes(8_MiB);
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, Not(HasSubstr("degraded"))) << child.output;
}

// RLIMIT_FSIZE gives a real short write of the kernel, and EFBIG for what remains.
TEST(refused_size, real_short_write_is_continued_and_its_error_reported_with_the_bytes_that_moved) {
  const child_result child = run_command("trap '' XFSZ; ulimit -f 8; " + child_test("", "limited_file.*"));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("short write seen"));
}

/// Does something only where the file size is limited, as the test above does; elsewhere all bytes are written.
TEST(limited_file, writes_up_to_its_limit) {
  io_test::scratch_directory directory;
  for (const io::backend_kind kind : {io::backend_kind::automatic, io::backend_kind::threads}) {
    const auto io = io::make_backend({.kind = kind});
    const int file = ::open((directory.path() / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);
    ASSERT_GE(file, 0);
    guarded_buffer memory(64_KiB);
    batch ops(*io);
    const io::result outcome = ops.run(operation_kind::write, file, 0, memory.data(), 64_KiB);
    const auto size = static_cast<byte_count>(::lseek(file, 0, SEEK_END));
    EXPECT_EQ(outcome.bytes, size);
    EXPECT_EQ(outcome.error_number, size == 64_KiB ? 0 : EFBIG);
    if (size == 8 * 512 || size == 8 * 1024) {  // the unit of `ulimit -f` is the shell's choice
      std::puts("short write seen");
    }
    ::close(file);
  }
}

}  // namespace
}  // namespace forebay
