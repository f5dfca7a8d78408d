// Direct transfers that pass at open and for writes, and are refused at the first read.
#include <gmock/gmock.h>

#include "child_process.hpp"
#include "io_fixture.hpp"

namespace forebay {
namespace {

using io_test::child_result;
using io_test::child_test;
using io_test::run_command;
using ::testing::HasSubstr;

TEST(refused_direct_read, becomes_buffered_and_says_why) {
  if (!io_test::can_trace()) {
    GTEST_SKIP() << "strace is missing, or may not trace here";
  }
  const io_test::scratch_directory directory;
  const std::string file = (directory.path() / "f").string();
  const std::string strace =
      "strace -f -o /dev/null -P '" + file + "' -e trace=pread64 -e inject=pread64:error=EINVAL:when=1..4";
  const child_result child = run_command("FOREBAY_TEST_PLACE='" + directory.path().string() + "' " +
                                         child_test(strace, "file_here.holds_bytes"));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("direct: no"));
  EXPECT_THAT(child.output, HasSubstr("direct transfers are refused: EINVAL"));
}

}  // namespace
}  // namespace forebay
