// Depth and merging that are changed between transfers.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/io/backend.hpp>
#include <forebay/io/detail/request_queue.hpp>

#include "io_fixture.hpp"

namespace forebay::io {
namespace {

using io_test::batch;
using io_test::both_backends;
using io_test::guarded_buffer;
using io_test::random_bytes;

/// Counts what is in the kernel.
class kernel_watch final : public interceptor {
 public:
  std::int64_t before(const transfer&) noexcept override {
    const int now = in_kernel_.fetch_add(1) + 1;
    int most = most_.load();
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
    return 0;
  }
  std::int64_t after(const transfer&, std::int64_t outcome) noexcept override {
    in_kernel_.fetch_sub(1);
    return outcome;
  }
  void restart() { most_ = 0; }
  [[nodiscard]] int most() const { return most_.load(); }

 private:
  std::atomic<int> in_kernel_{0};
  std::atomic<int> most_{0};
};

/// Queues operations on consecutive blocks of one file and counts the runs that come out.
class neighbours {
 public:
  neighbours(detail::request_queue& queue, byte_count block, std::size_t count) : queue_(queue), ops_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      ops_[i].offset = i * block;
      ops_[i].bytes = block;
      queue_.push(ops_[i]);
    }
  }
  /// Lengths of the runs, in operations, as far as the depth allows without a landing.
  std::vector<std::size_t> runs_within_depth() {
    std::vector<std::size_t> lengths;
    while (operation* first = queue_.pop()) {
      std::size_t n = 0;
      for (const operation* op = first; op != nullptr; op = op->together) {
        ++n;
      }
      lengths.push_back(n);
    }
    return lengths;
  }

 private:
  detail::request_queue& queue_;
  std::vector<operation> ops_;
};

TEST(request_queue_limits, runs_and_depth_follow_them) {
  detail::request_queue queue(1, 16_KiB);
  queue.set_limits(3, 32_KiB);
  neighbours of_4k(queue, 4_KiB, 40);
  EXPECT_EQ(of_4k.runs_within_depth(), (std::vector<std::size_t>{8, 8, 8}));  // 32 KiB each, three at once
  EXPECT_FALSE(queue.empty());
}

TEST(request_queue_limits, are_refused_while_something_waits_and_for_nothing) {
  detail::request_queue queue(1, 16_KiB);
  EXPECT_THROW(queue.set_limits(0, 16_KiB), usage_error);
  EXPECT_THROW(queue.set_limits(1, 0), usage_error);
  operation op;
  op.bytes = 4_KiB;
  queue.push(op);
  EXPECT_THROW(queue.set_limits(2, 16_KiB), usage_error);
  ASSERT_EQ(queue.pop(), &op);
  EXPECT_NO_THROW(queue.set_limits(2, 16_KiB));  // in the kernel is not waiting
}

class tune : public both_backends {};

TEST_P(tune, bounds_what_is_in_the_kernel_from_then_on) {
  kernel_watch watch;
  backend_options o = options(&watch);
  o.threads = 6;
  o.merge = 4_KiB;  // no two go together
  const auto io = make_backend(o);
  const int file = open_file("f");
  const int files[] = {file};
  io->register_files(files);
  constexpr std::size_t count = 400;
  guarded_buffer memory(count * 4_KiB);
  for (const unsigned depth : {1U, 3U, 2U, 64U}) {
    io->tune(depth, 4_KiB);
    watch.restart();
    batch all(*io);
    for (std::size_t i = 0; i < count; ++i) {
      all.start(operation_kind::write, file, i * 4_KiB, memory.data() + i * 4_KiB, 4_KiB);
    }
    all.wait();
    EXPECT_LE(watch.most(), static_cast<int>(depth));
    EXPECT_GE(watch.most(), 1);
  }
}

TEST_P(tune, between_rounds_of_traffic_loses_nothing) {
  const auto io = make_backend(options());
  const int file = open_file("f");
  constexpr std::size_t count = 64;
  constexpr byte_count block = 16_KiB;
  guarded_buffer back(count * block);
  std::uint64_t seed = 0;
  for (const byte_count merge : {byte_count{4_MiB}, byte_count{16_KiB}, byte_count{48_KiB}, byte_count{1_MiB}}) {
    for (const unsigned depth : {1U, 64U, 5U}) {
      io->tune(depth, merge);
      std::vector<std::byte> wanted = random_bytes(count * block, ++seed);
      batch writes(*io);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * 37 % count * block;  // 37 and 64 have no common factor: each block once
        writes.start(operation_kind::write, file, at, wanted.data() + at, block);
      }
      writes.wait();
      batch reads(*io);
      for (std::size_t i = 0; i < count; ++i) {
        reads.start(operation_kind::read, file, i * block, back.data() + i * block, block);
      }
      reads.wait();
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(writes.of(i).error_number, 0);
        ASSERT_EQ(writes.of(i).bytes, block);
        ASSERT_EQ(reads.of(i).bytes, block);
      }
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), back.data()));
    }
  }
  EXPECT_TRUE(back.canaries_intact());
}

TEST_P(tune, to_nothing_is_refused) {
  const auto io = make_backend(options());
  EXPECT_THROW(io->tune(0, 4_KiB), usage_error);
  EXPECT_THROW(io->tune(4, 0), usage_error);
  const int file = open_file("f");
  guarded_buffer memory(4_KiB);
  batch one(*io);
  EXPECT_EQ(one.run(operation_kind::write, file, 0, memory.data(), 4_KiB).bytes, 4_KiB);
}

INSTANTIATE_TEST_SUITE_P(io, tune, ::testing::Values(backend_kind::uring, backend_kind::threads),
                         io_test::backend_name);

}  // namespace
}  // namespace forebay::io
