#include <forebay/memory/ledger.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

using ::testing::HasSubstr;

TEST(ledger, counts_to_the_last_byte) {
  ledger l("host", 100);
  EXPECT_TRUE(l.try_reserve(60));
  EXPECT_FALSE(l.try_reserve(41));
  EXPECT_TRUE(l.try_reserve(40));
  EXPECT_FALSE(l.try_reserve(1));
  EXPECT_TRUE(l.try_reserve(0));
  EXPECT_EQ(l.used(), 100U);
  EXPECT_EQ(l.free(), 0U);
  l.release(70);
  EXPECT_EQ(l.used(), 30U);
  EXPECT_EQ(l.free(), 70U);
  EXPECT_EQ(l.peak(), 100U);
  l.release(30);
}

TEST(ledger, sums_beyond_64_bits_do_not_wrap) {
  ledger l("device", ~byte_count{0});
  l.reserve(~byte_count{0} - 1);
  EXPECT_FALSE(l.try_reserve(2));
  EXPECT_FALSE(l.try_reserve(~byte_count{0}));
  EXPECT_TRUE(l.try_reserve(1));
  l.release(~byte_count{0});
}

TEST(ledger, a_refusal_names_the_tier_and_all_three_numbers) {
  ledger l("device", 1000);
  l.reserve(300);
  try {
    l.reserve(701);
    FAIL() << "more than the capacity was given";
  } catch (const capacity_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("device"));
    EXPECT_THAT(e.what(), HasSubstr("701"));
    EXPECT_THAT(e.what(), HasSubstr("300 of 1000 bytes"));
  }
  EXPECT_EQ(l.used(), 300U);
  l.release(300);
}

TEST(ledger, never_exceeds_its_capacity_under_contention) {
  constexpr byte_count capacity = 1000;
  ledger l("host", capacity);
  std::atomic<byte_count> own{0};  // counted apart: added after a reservation, taken off before its release
  std::atomic<bool> exceeded{false};
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    while (!done) {
      exceeded = exceeded || l.used() > capacity || l.peak() > capacity;
    }
  });
  std::vector<std::thread> pool;
  for (byte_count t = 1; t <= 4; ++t) {
    pool.emplace_back([&, t] {
      for (byte_count i = 0; i < 20'000; ++i) {
        const byte_count n = (i * 37 + t * 101) % 400;
        if (l.try_reserve(n)) {
          exceeded = exceeded || own.fetch_add(n) + n > capacity;
          own -= n;
          l.release(n);
        }
      }
    });
  }
  for (std::thread& t : pool) {
    t.join();
  }
  done = true;
  watcher.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(l.used(), 0U);
  EXPECT_LE(l.peak(), capacity);
  EXPECT_GT(l.peak(), 0U);
}

TEST(ledger_death_test, a_leak_and_a_double_release_abort) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        ledger l("host", 10);
        l.reserve(1);
      },
      "invariant");
  EXPECT_DEATH(
      {
        ledger l("host", 10);
        l.reserve(4);
        l.release(5);
      },
      "invariant");
}

}  // namespace
}  // namespace forebay
