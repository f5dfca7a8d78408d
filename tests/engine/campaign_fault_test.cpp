// A campaign of random faults against one engine workload: each seed ends in the right bytes or in a typed error that
// says what failed. FOREBAY_CAMPAIGN_SEEDS=2000 runs that many seeds, instead of the 200 that every run has.
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "campaign.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t parts = 8;  // so that several run at once

std::uint64_t seed_count() {
  const char* wanted = std::getenv("FOREBAY_CAMPAIGN_SEEDS");
  return wanted == nullptr ? 200 : std::strtoull(wanted, nullptr, 10);
}

class fault_campaign : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(fault_campaign, ends_in_the_right_bytes_or_an_error_with_all_names) {
  std::uint64_t right = 0;
  std::uint64_t errors = 0;
  double longest = 0.0;
  for (std::uint64_t seed = GetParam(); seed < seed_count(); seed += parts) {
    const campaign::trial t = campaign::make_trial(seed);
    const campaign::finding found = campaign::run(t);
    EXPECT_EQ(found.problem, "") << campaign::describe(t);
    ++(found.error.empty() ? right : errors);
    longest = std::max(longest, found.seconds);
  }
  std::cout << right << " seeds ended in the right bytes, " << errors << " in an error; the longest took " << longest
            << " s\n";
}

INSTANTIATE_TEST_SUITE_P(part, fault_campaign, ::testing::Range<std::uint64_t>(0, parts));

TEST(fault_campaign_itself, without_faults_its_workload_uses_storage_and_is_right) {
  for (const io::backend_kind kind : {io::backend_kind::automatic, io::backend_kind::threads}) {
    campaign::trial t;
    t.how.kind = kind;
    t.how.paths = 2;
    const campaign::finding found = campaign::run(t);
    EXPECT_EQ(found.problem, "");
    EXPECT_EQ(found.error, "");
    EXPECT_GT(found.seen.transfers, 100U);
    std::cout << found.seen.transfers << " transfers in " << found.seconds << " s\n";
  }
}

// What the campaign is worth depends on what its scripts reach: every effect strikes, and both ends are met.
TEST(fault_campaign_itself, reaches_every_effect_and_both_ends) {
  testing::io_faults::counts all;
  unsigned right = 0;
  unsigned errors = 0;
  for (std::uint64_t seed = 1'000'000; seed < 1'000'060; ++seed) {
    const campaign::finding found = campaign::run(campaign::make_trial(seed));
    ++(found.error.empty() ? right : errors);
    all.delayed += found.seen.delayed;
    all.reordered += found.seen.reordered;
    all.shortened += found.seen.shortened;
    all.underreported += found.seen.underreported;
    all.failed += found.seen.failed;
    all.torn += found.seen.torn;
    all.stale_reads += found.seen.stale_reads;
    all.stale_completions += found.seen.stale_completions;
    all.flipped += found.seen.flipped;
    all.refused += found.seen.refused;
  }
  for (const std::uint64_t n : {all.delayed, all.reordered, all.shortened, all.underreported, all.failed, all.torn,
                                all.stale_reads, all.stale_completions, all.flipped, all.refused}) {
    EXPECT_GT(n, 0U);
  }
  EXPECT_GT(right, 5U);
  EXPECT_GT(errors, 5U);
}

}  // namespace
}  // namespace forebay
