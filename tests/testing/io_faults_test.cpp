// The script of faults by itself: what strikes whom, and that it is the same every time.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/testing/io_faults.hpp>

namespace forebay {
namespace {

using io::operation_kind;
using testing::fault_trigger;
using testing::io_faults;
using transfer = io::interceptor::transfer;
using namespace std::chrono_literals;

transfer read_at(byte_count offset, byte_count bytes = 4096, int file = 3) {
  return {operation_kind::read, file, offset, nullptr, bytes};
}

/// What a script answers to reads of `count` places, one after the other or from the last to the first.
std::vector<std::int64_t> answers(io_faults& faults, std::size_t count, bool backwards = false) {
  std::vector<std::int64_t> result(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = backwards ? count - 1 - k : k;
    result[i] = faults.before(read_at(i * 4096));
  }
  return result;
}

TEST(io_faults, without_faults_change_nothing) {
  io_faults faults;
  EXPECT_EQ(faults.before(read_at(0)), 0);
  EXPECT_EQ(faults.after(read_at(0), 4096), 4096);
  EXPECT_EQ(faults.after(read_at(0), -EIO), -EIO);
  EXPECT_EQ(faults.hold_until(read_at(0)), time_point{});
  EXPECT_EQ(faults.seen().transfers, 1U);
}

TEST(io_faults, the_nth_is_struck_and_no_other) {
  io_faults faults;
  faults.fail(EIO, fault_trigger::nth(3));
  EXPECT_EQ(answers(faults, 6), (std::vector<std::int64_t>{0, 0, -EIO, 0, 0, 0}));
  EXPECT_EQ(faults.seen().failed, 1U);
}

TEST(io_faults, every_so_many_up_to_a_number_of_strikes) {
  io_faults faults;
  faults.fail(EAGAIN, {2, 3, 2});
  EXPECT_EQ(answers(faults, 10), (std::vector<std::int64_t>{0, -EAGAIN, 0, 0, -EAGAIN, 0, 0, 0, 0, 0}));
}

TEST(io_faults, filters_choose_kind_and_file) {
  io_faults faults;
  faults.fail(EIO, {}, {operation_kind::write, 7});
  EXPECT_EQ(faults.before({operation_kind::read, 7, 0, nullptr, 1}), 0);
  EXPECT_EQ(faults.before({operation_kind::write, 6, 0, nullptr, 1}), 0);
  EXPECT_EQ(faults.before({operation_kind::write, 7, 0, nullptr, 1}), -EIO);
}

TEST(io_faults, filters_choose_the_path_by_its_place_among_the_announced) {
  io_faults faults;
  faults.fail(EIO, {}, {std::nullopt, -1, 1});
  EXPECT_EQ(faults.before(read_at(0, 4096, 9)), 0);  // nobody has said yet what path 1 is
  const std::array<int, 2> files{8, 9};
  faults.announced(files);
  EXPECT_EQ(faults.before(read_at(0, 4096, 8)), 0);
  EXPECT_EQ(faults.before(read_at(0, 4096, 9)), -EIO);
  EXPECT_EQ(faults.before(read_at(0, 4096, 1)), 0);  // a descriptor is no index
}

TEST(io_faults, a_script_is_a_value_that_may_arm_several) {
  const testing::fault_script script = testing::parse_fault_script("fail EIO nth 2");
  for (int i = 0; i < 2; ++i) {
    io_faults faults(script);
    EXPECT_EQ(answers(faults, 3), (std::vector<std::int64_t>{0, -EIO, 0}));
  }
}

TEST(io_faults, services_are_refused_as_asked) {
  using service = io::interceptor::service;
  io_faults faults;
  faults.refuse(service::registered_memory, ENOMEM);
  EXPECT_EQ(faults.refuse(service::ring), 0);
  EXPECT_EQ(faults.refuse(service::registered_files), 0);
  EXPECT_EQ(faults.refuse(service::registered_memory), ENOMEM);
  EXPECT_EQ(faults.seen().refused, 1U);
}

TEST(io_faults, chance_follows_the_seed_and_not_the_order) {
  constexpr std::size_t count = 2000;
  const auto with = [](std::uint64_t seed, bool backwards) {
    io_faults faults(seed);
    faults.fail(EIO, fault_trigger::chance(0.25));
    return answers(faults, count, backwards);
  };
  const std::vector<std::int64_t> once = with(5, false);
  EXPECT_EQ(once, with(5, true));
  EXPECT_NE(once, with(6, false));
  const auto struck = static_cast<double>(std::count(once.begin(), once.end(), -EIO));
  EXPECT_NEAR(struck, 500.0, 100.0);  // five standard deviations
}

TEST(io_faults, a_place_moved_again_has_another_chance) {
  io_faults faults(5);
  faults.fail(EAGAIN, fault_trigger::chance(0.5));
  int struck = 0;
  for (int i = 0; i < 200; ++i) {
    struck += faults.before(read_at(0)) != 0 ? 1 : 0;
  }
  EXPECT_GT(struck, 50);
  EXPECT_LT(struck, 150);
}

TEST(io_faults, shortened_transfers_keep_a_byte_and_lose_one) {
  io_faults faults(9);
  faults.shorten();
  for (byte_count i = 0; i < 1000; ++i) {
    const std::int64_t asked = faults.before(read_at(i, 7));
    EXPECT_GE(asked, 1);
    EXPECT_LT(asked, 7);
  }
  EXPECT_EQ(faults.before(read_at(0, 1)), 0);  // nothing to shorten
}

TEST(io_faults, underreporting_changes_successes_alone) {
  io_faults faults(10);
  faults.underreport();
  for (byte_count i = 0; i < 100; ++i) {
    const std::int64_t reported = faults.after(read_at(i), 4096);
    EXPECT_GE(reported, 1);
    EXPECT_LT(reported, 4096);
  }
  EXPECT_EQ(faults.after(read_at(0), 0), 0);
  EXPECT_EQ(faults.after(read_at(0), -EIO), -EIO);
}

TEST(io_faults, delays_lie_in_their_range_and_add_up) {
  io_faults faults(11);
  faults.delay(1h, 2h).delay(10h, 10h);
  for (byte_count i = 0; i < 100; ++i) {
    const time_point before = std::chrono::steady_clock::now();
    const time_point until = faults.hold_until(read_at(i));
    EXPECT_GE(until, before + 11h);
    EXPECT_LE(until, std::chrono::steady_clock::now() + 12h);
  }
}

TEST(io_faults, one_bit_of_a_read_is_flipped_within_what_was_read) {
  io_faults faults(12);
  faults.flip_bit();
  for (byte_count round = 0; round < 200; ++round) {
    std::array<std::byte, 64> memory{};
    const transfer t{operation_kind::read, 3, round, memory.data(), memory.size()};
    EXPECT_EQ(faults.after(t, 16), 16);
    int bits = 0;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const int here = std::popcount(std::to_integer<unsigned>(memory.at(i)));
      EXPECT_TRUE(here == 0 || i < 16);
      bits += here;
    }
    EXPECT_EQ(bits, 1);
  }
  std::array<std::byte, 64> memory{};
  EXPECT_EQ(faults.after({operation_kind::write, 3, 0, memory.data(), memory.size()}, 64), 64);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0}), 64);
}

TEST(io_faults, cleared_ones_strike_no_more_and_counts_stay) {
  io_faults faults;
  faults.fail(EIO);
  EXPECT_EQ(faults.before(read_at(0)), -EIO);
  faults.clear();
  EXPECT_EQ(faults.before(read_at(0)), 0);
  EXPECT_EQ(faults.seen().failed, 1U);
  EXPECT_EQ(faults.seen().transfers, 2U);
}

}  // namespace
}  // namespace forebay
