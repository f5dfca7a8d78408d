// How operations are cut into pieces and their results judged: arithmetic on addresses, without memory or files.
#include <cerrno>

#include <gtest/gtest.h>

#include <forebay/io/detail/piecework.hpp>

namespace forebay::io {
namespace {

using detail::decision;
using detail::judge;
using detail::next_piece;
using detail::verdict;

constexpr byte_count kernel_cap = 0x7ffff000;
constexpr unsigned retries = 16;

operation make(byte_count bytes, byte_count alignment) {
  operation op;
  op.bytes = bytes;
  op.alignment = alignment;
  op.offset = byte_count{1} << 40U;
  op.memory = reinterpret_cast<std::byte*>(byte_count{1} << 44U);  // an address that is never touched
  return op;
}

/// One round with a device that answers `outcome`.
decision answer(operation& op, byte_count cap, std::int64_t outcome) {
  op.piece_bytes = next_piece(op, cap).bytes;
  op.outcome = outcome;
  return judge(op, retries, time_point{});
}

class long_transfer : public ::testing::TestWithParam<std::tuple<byte_count, byte_count>> {};

TEST_P(long_transfer, pieces_are_legal_and_cover_it_once) {
  const auto [bytes, alignment] = GetParam();
  if (bytes % alignment != 0) {
    return;  // the caller's promise; only alignment 1 takes every length
  }
  operation op = make(bytes, alignment);
  byte_count reached = 0;
  for (int pieces = 0;; ++pieces) {
    ASSERT_LT(pieces, 10);
    const interceptor::transfer piece = next_piece(op, kernel_cap);
    ASSERT_GT(piece.bytes, 0U);
    ASSERT_LE(piece.bytes, kernel_cap);
    ASSERT_EQ(piece.bytes % alignment, 0U);
    ASSERT_EQ(piece.offset % alignment, 0U);
    ASSERT_EQ(reinterpret_cast<byte_count>(piece.memory) % alignment, 0U);
    ASSERT_EQ(piece.offset - op.offset, reached);
    ASSERT_EQ(static_cast<byte_count>(piece.memory - op.memory), reached);
    reached += piece.bytes;
    const decision d = answer(op, kernel_cap, static_cast<std::int64_t>(piece.bytes));
    if (d.what == verdict::finished) {
      EXPECT_EQ(d.how.error_number, 0);
      EXPECT_EQ(d.how.bytes, bytes);
      break;
    }
    ASSERT_EQ(d.what, verdict::again);
  }
  EXPECT_EQ(reached, bytes);
}

INSTANTIATE_TEST_SUITE_P(sizes, long_transfer,
                         ::testing::Combine(::testing::Values(1_B, kernel_cap - 4096, kernel_cap - 1, kernel_cap,
                                                              kernel_cap + 1, kernel_cap + 4096, 2_GiB, 4_GiB,
                                                              4_GiB + 1, 4_GiB + 4096, 4_GiB + 65536, 8_GiB),
                                            ::testing::Values(1_B, 512_B, 4096_B, 65536_B)));

TEST(judging, short_transfer_goes_on_at_the_aligned_place_below) {
  operation op = make(4096, 512);
  EXPECT_EQ(answer(op, kernel_cap, 1000).what, verdict::again);
  const interceptor::transfer rest = next_piece(op, kernel_cap);
  EXPECT_EQ(rest.offset, op.offset + 512);
  EXPECT_EQ(rest.bytes, 4096U - 512U);
  const decision end = answer(op, kernel_cap, 4096 - 512);
  EXPECT_EQ(end.what, verdict::finished);
  EXPECT_EQ(end.how.error_number, 0);
  EXPECT_EQ(end.how.bytes, 4096U);
}

TEST(judging, end_of_file_inside_an_aligned_unit_is_found_and_ends) {
  operation op = make(4096, 512);
  decision d = answer(op, kernel_cap, 1000);  // the file has 1000 bytes
  int rounds = 0;
  while (d.what == verdict::again) {
    ASSERT_LT(++rounds, 100);
    d = answer(op, kernel_cap, 1000 - 512);
  }
  EXPECT_EQ(d.what, verdict::finished);
  EXPECT_EQ(d.how.error_number, 0);
  EXPECT_EQ(d.how.bytes, 1000U);
}

TEST(judging, nothing_at_all_ends_at_once) {
  operation op = make(4096, 512);
  const decision d = answer(op, kernel_cap, 0);
  EXPECT_EQ(d.what, verdict::finished);
  EXPECT_EQ(d.how.error_number, 0);
  EXPECT_EQ(d.how.bytes, 0U);
}

TEST(judging, transient_errors_are_tried_again_later_each_time_but_not_for_ever) {
  for (const int transient : {EAGAIN, EBUSY, ENOMEM, EINTR}) {
    operation op = make(4096, 1);
    duration waited{};
    for (unsigned i = 0; i < retries; ++i) {
      const decision d = answer(op, kernel_cap, -transient);
      ASSERT_NE(d.what, verdict::finished) << transient << " " << i;
      const duration wait = d.what == verdict::later ? op.not_before - time_point{} : duration{};
      waited += wait;
    }
    EXPECT_LT(waited, std::chrono::seconds(1));
    const decision end = answer(op, kernel_cap, -transient);
    EXPECT_EQ(end.what, verdict::finished);
    EXPECT_EQ(end.how.error_number, transient);
  }
}

TEST(judging, back_off_grows) {
  operation op = make(4096, 1);
  duration last{};
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(answer(op, kernel_cap, -EAGAIN).what, verdict::later);
    const duration wait = op.not_before - time_point{};
    EXPECT_GT(wait, last);
    last = wait;
  }
}

TEST(judging, progress_starts_the_count_of_transient_errors_again) {
  operation op = make(retries * 4096, 1);
  for (unsigned piece = 0; piece + 1 < retries; ++piece) {
    for (unsigned i = 0; i < retries; ++i) {
      ASSERT_NE(answer(op, 4096, -EAGAIN).what, verdict::finished);
    }
    ASSERT_EQ(answer(op, 4096, 4096).what, verdict::again);
  }
}

TEST(judging, io_error_is_tried_twice_again_and_then_reported_with_what_moved) {
  operation op = make(8192, 512);
  EXPECT_EQ(answer(op, 4096, 4096).what, verdict::again);
  EXPECT_EQ(answer(op, 4096, -EIO).what, verdict::later);
  EXPECT_EQ(answer(op, 4096, -EIO).what, verdict::later);
  const decision end = answer(op, 4096, -EIO);
  EXPECT_EQ(end.what, verdict::finished);
  EXPECT_EQ(end.how.error_number, EIO);
  EXPECT_EQ(end.how.bytes, 4096U);
}

TEST(judging, other_errors_end_at_once) {
  for (const int fatal : {EINVAL, ENOSPC, EBADF, EFBIG, EFAULT}) {
    operation op = make(4096, 1);
    const decision end = answer(op, kernel_cap, -fatal);
    EXPECT_EQ(end.what, verdict::finished);
    EXPECT_EQ(end.how.error_number, fatal);
  }
}

TEST(judging, more_bytes_than_asked_for_are_not_believed) {
  operation op = make(8192, 1);
  const decision end = answer(op, 4096, 4097);
  EXPECT_EQ(end.what, verdict::finished);
  EXPECT_EQ(end.how.error_number, EIO);
}

TEST(judging, a_cap_below_the_alignment_still_moves_one_unit) {
  const operation op = make(65536 * 2, 65536);
  EXPECT_EQ(next_piece(op, 4096).bytes, 65536U);
}

}  // namespace
}  // namespace forebay::io
