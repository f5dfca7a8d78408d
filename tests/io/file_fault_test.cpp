// Files where the file system refuses: O_DIRECT at open and at first use, preallocation, and a full disk.
#include <cstdio>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <forebay/io/file.hpp>

#include "child_process.hpp"
#include "io_fixture.hpp"

namespace forebay {
namespace {

using io::direct_file;
using io_test::can_trace;
using io_test::child_result;
using io_test::child_test;
using io_test::run_command;
using ::testing::HasSubstr;

constexpr const char* place_variable = "FOREBAY_TEST_PLACE";

/// The directory that a case below gives its child, else a fresh one.
struct work_place {
  work_place() {
    const char* wanted = std::getenv(place_variable);
    if (wanted == nullptr) {
      own = std::make_unique<io_test::scratch_directory>();
    }
    path = wanted == nullptr ? own->path() : std::filesystem::path(wanted);
  }
  std::unique_ptr<io_test::scratch_directory> own;
  std::filesystem::path path;
};

TEST(file_here, holds_bytes) {
  const work_place place;
  direct_file file = direct_file::create(place.path / "f");
  std::printf("direct: %s\nunit: %d.\ndegraded: %s\n", file.layout().direct ? "yes" : "no",
              static_cast<int>(file.layout().offset_alignment), file.layout().degradation.c_str());
  file.preallocate(64_KiB);
  struct stat status {};
  EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(64_KiB));
  io_test::guarded_buffer memory(64_KiB);
  EXPECT_EQ(::pwrite(file.descriptor(), memory.data(), 64_KiB, 0), static_cast<ssize_t>(64_KiB));
  if (!file.layout().direct) {
    EXPECT_EQ(::pwrite(file.descriptor(), memory.data(), 3, 5), 3);
  }
}

TEST(file_here, that_grows_over_a_small_disk_is_refused_and_gives_its_part_back) {
  const work_place place;
  direct_file file = direct_file::create(place.path / "f");
  file.preallocate(64_KiB);
  const auto free_bytes = std::filesystem::space(place.path).available;
  EXPECT_THROW(file.preallocate(64_KiB + free_bytes + 1_TiB), capacity_error);
  if (free_bytes < 4_MiB) {  // a disk that nobody else uses
    EXPECT_THROW(file.preallocate(64_KiB + free_bytes + 4_KiB), capacity_error);
    EXPECT_EQ(std::filesystem::space(place.path).available, free_bytes);
    file.preallocate(64_KiB + free_bytes);
    EXPECT_EQ(std::filesystem::space(place.path).available, 0U);
    std::puts("small disk seen");
  }
}

class refused_file : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_trace()) {
      GTEST_SKIP() << "strace is missing, or may not trace here";
    }
  }
  /// Runs `file_here.holds_bytes` with a failing call on its file.
  child_result with_failing(const std::string& call, const std::string& what) {
    const std::string strace = "strace -f -o /dev/null -P '" + (directory_.path() / "f").string() +
                               "' -e trace=" + call + " -e inject=" + call + ":" + what;
    return run_command(std::string(place_variable) + "='" + directory_.path().string() + "' " +
                       child_test(strace, "file_here.holds_bytes"));
  }
  io_test::scratch_directory directory_;
};

TEST_F(refused_file, direct_transfers_refused_at_open_become_buffered) {
  const child_result child = with_failing("openat", "error=EINVAL:when=1");
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("direct: no"));
  EXPECT_THAT(child.output, HasSubstr("EINVAL"));
}

TEST_F(refused_file, direct_transfers_refused_at_first_use_become_buffered) {
  const child_result child = with_failing("pwrite64", "error=EINVAL:when=1..4");
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("direct: no"));
  EXPECT_THAT(child.output, HasSubstr("EINVAL"));
}

TEST_F(refused_file, a_coarser_alignment_is_found_by_trial) {
  const child_result child = with_failing("pwrite64", "error=EINVAL:when=1..2");
  EXPECT_EQ(child.status, 0) << child.output;
  // Trials go 512, 4096, 16384, 65536, from what the file system says: the third of them, or a later one.
  EXPECT_THAT(child.output, ::testing::AnyOf(HasSubstr("unit: 16384."), HasSubstr("unit: 65536.")));
  EXPECT_THAT(child.output, HasSubstr("direct: yes"));
}

TEST_F(refused_file, without_preallocation_it_is_extended) {
  const child_result child = with_failing("fallocate", "error=EOPNOTSUPP");
  EXPECT_EQ(child.status, 0) << child.output;
}

TEST_F(refused_file, other_errors_of_open_are_reported) {
  const child_result child = with_failing("openat", "error=EACCES");
  EXPECT_NE(child.status, 0);
  EXPECT_THAT(child.output, HasSubstr("EACCES"));
  EXPECT_THAT(child.output, HasSubstr((directory_.path() / "f").string()));
}

TEST(full_disk, is_found_when_space_is_reserved) {
  const io_test::scratch_directory directory;
  const std::string where = directory.path().string();
  if (run_command("unshare -m mount -t tmpfs -o size=1m none '" + where + "'").status != 0) {
    GTEST_SKIP() << "this user may not mount a file system of its own";
  }
  const child_result child = run_command(
      "unshare -m sh -c \"mount -t tmpfs -o size=1m none '" + where + "' && " + place_variable + "='" + where + "' " +
      child_test("", "file_here.that_grows_over_a_small_disk_is_refused_and_gives_its_part_back") + "\"");
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("small disk seen"));
}

}  // namespace
}  // namespace forebay
