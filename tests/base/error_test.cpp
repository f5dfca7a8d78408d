#include <forebay/base/error.hpp>

#include <cerrno>
#include <chrono>
#include <limits>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include <forebay/base/clock.hpp>
#include <forebay/base/contract.hpp>

namespace forebay {
namespace {

static_assert(std::is_base_of_v<error, io_error> && std::is_base_of_v<error, device_error>);
static_assert(std::is_base_of_v<error, capacity_error> && std::is_base_of_v<error, corruption_error>);
static_assert(std::is_base_of_v<error, unsupported_error> && std::is_base_of_v<std::runtime_error, error>);
// A bug of the caller is not caught by those who handle failures of the machine.
static_assert(!std::is_base_of_v<error, usage_error> && std::is_base_of_v<std::logic_error, usage_error>);

TEST(Error, AnIoErrorKeepsItsErrno) {
  const io_error e("can't write", ENOSPC);
  EXPECT_EQ(e.error_number(), ENOSPC);
  EXPECT_STREQ(e.what(), "can't write");
}

TEST(Error, DescribesErrnoByNameAndText) {
  EXPECT_EQ(describe_errno(ENOSPC), "ENOSPC (No space left on device)");
  EXPECT_EQ(describe_errno(EINTR), "EINTR (Interrupted system call)");
  EXPECT_EQ(describe_errno(987654), "errno 987654");
  EXPECT_EQ(describe_errno(-ENOSPC), "errno -28");  // a negated one shows as such
  EXPECT_NE(describe_errno(std::numeric_limits<int>::min()), "");
}

TEST(Contract, ABrokenPreconditionSaysWhatAndWhere) {
  const int n = 3;
  EXPECT_NO_THROW(FOREBAY_EXPECTS(n == 3, "n must be three"));
  try {
    FOREBAY_EXPECTS(n == 4, "n must be four");
    FAIL() << "not checked";
  } catch (const usage_error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("n must be four"), std::string::npos) << text;
    EXPECT_NE(text.find("n == 4"), std::string::npos) << text;
    EXPECT_NE(text.find("error_test.cpp:"), std::string::npos) << text;
  }
}

TEST(Contract, ChecksEvaluateTheirConditionOnce) {
  int count = 0;
  FOREBAY_EXPECTS(++count == 1, "");
  FOREBAY_ASSERT(++count == 2);
  EXPECT_EQ(count, 2);
}

TEST(ContractDeathTest, ABrokenInvariantAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int n = 3;
  EXPECT_DEATH(FOREBAY_ASSERT(n == 4), "internal invariant broken: n == 4 at .*error_test.cpp:");
}

TEST(Clock, SecondsConvertBothWays) {
  using namespace std::chrono_literals;
  EXPECT_DOUBLE_EQ(to_seconds(1500ms), 1.5);
  EXPECT_EQ(from_seconds(0.25), 250ms);
  EXPECT_EQ(from_seconds(-1.0), -1s);
}

TEST(Clock, TheSteadyClockReachesItsDeadline) {
  steady_clock& clock = steady_clock::instance();
  const time_point deadline = clock.now() + std::chrono::milliseconds(2);
  clock.sleep_until(deadline);
  EXPECT_GE(clock.now(), deadline);
  const time_point after = clock.now();
  clock.sleep_until(deadline);  // long past
  EXPECT_GE(clock.now(), after);
}

}  // namespace
}  // namespace forebay
