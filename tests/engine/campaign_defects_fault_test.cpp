// The campaign is worth what it finds: defects that storage code has been seen with, planted between store and backend,
// and each is found by the very seeds that the right code passes.
#include <iostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "campaign.hpp"
#include "campaign_defects.hpp"
#include "campaign_watch.hpp"

namespace forebay {
namespace {

using campaign::defect;
using ::testing::ContainsRegex;

constexpr std::uint64_t seeds_given = 60;

struct planted {
  defect what;
  const char* name;
  const char* found_as;
};

void PrintTo(const planted& p, std::ostream* out) { *out << p.name; }

constexpr const char* wrong_bytes = "no fault explains|saw other bytes|differs from";

#if defined(__SANITIZE_THREAD__)
constexpr bool under_race_detector = true;
#elif defined(__has_feature)
constexpr bool under_race_detector = __has_feature(thread_sanitizer);
#else
constexpr bool under_race_detector = false;
#endif

class planted_defect : public ::testing::TestWithParam<planted> {};

TEST_P(planted_defect, is_found_by_the_campaign) {
  std::string problem;
  std::uint64_t seed = 0;
  for (; seed < seeds_given && problem.empty(); ++seed) {
    campaign::trial t = campaign::make_trial(seed);
    t.how.defect = campaign::plant(GetParam().what);
    if (GetParam().what == defect::partial_submit) {
      t.how.stall_limit = std::chrono::milliseconds(1000);
    }
    problem = campaign::run(t).problem;
  }
  EXPECT_THAT(problem, ContainsRegex(GetParam().found_as));
  std::cout << "found after " << seed << " seeds: " << problem << "\n";
}

std::vector<planted> planted_defects_here() {
  std::vector<planted> all{{defect::result_never_read, "result_never_read", wrong_bytes},
                           {defect::errno_lost, "errno_lost", "no fault explains"},
                           {defect::partial_submit, "partial_submit", "stall: .*could not be served"},
                           {defect::partial_success, "partial_success", wrong_bytes},
                           {defect::short_length, "short_length", wrong_bytes},
                           {defect::short_offset, "short_offset", wrong_bytes},
                           {defect::tail_dropped, "tail_dropped", wrong_bytes},
                           {defect::descriptor_left, "descriptor_left", "descriptors are left"},
                           {defect::file_left, "file_left", "files are left behind"}};
  if (!under_race_detector) {  // which finds these two itself, and ends the run before the campaign can judge it
    all.push_back({defect::completes_early, "completes_early", wrong_bytes});
    all.push_back({defect::completions_exchanged, "completions_exchanged", wrong_bytes});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(campaign, planted_defect, ::testing::ValuesIn(planted_defects_here()),
                         [](const auto& p) { return std::string(p.param.name); });

// Checksums are what stands between a drive that lies and a wrong number; without them the campaign sees the number.
TEST(planted_defects, unchecked_reads_are_found_by_the_campaign) {
  for (const char* script : {"flip chance 0.05", "tear chance 0.1", "stale read chance 0.1"}) {
    campaign::trial t;
    t.how.checksums = false;
    t.script = testing::parse_fault_script(script);
    EXPECT_THAT(campaign::run(t).problem, ContainsRegex("saw other bytes|differs from")) << script;
    t.how.checksums = true;
    EXPECT_EQ(campaign::run(t).problem, "") << script;
  }
}

TEST(planted_defect_death_test, a_hang_ends_the_process_and_says_where) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        const campaign::watchdog dog("what was tried", std::chrono::seconds(1));
        ::pause();
      },
      "HANG.*\n.*what was tried(.|\n)*thread ");
}

}  // namespace
}  // namespace forebay
