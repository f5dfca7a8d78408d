// Rates on a clock of the test's own: what counts as work queued, and that shares follow a path that slows down.
#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include <gmock/gmock.h>

#include <forebay/store/detail/path_shares.hpp>
#include <forebay/store/detail/rate_meter.hpp>

namespace forebay::store_detail {
namespace {

using namespace std::chrono_literals;
using io::operation_kind;

/// A path that takes one transfer after the other, `bytes / rate` seconds each.
class simulated_path {
 public:
  explicit simulated_path(double rate) : rate_(rate) {}

  void change_rate(double rate) { rate_ = rate; }
  void submit(time_point at, operation_kind kind, byte_count bytes) {
    meter_.begin([&] { return at; });
    free_at_ = std::max(free_at_, at) + from_seconds(static_cast<double>(bytes) / rate_);
    queue_.push_back({free_at_, kind, bytes});
  }
  [[nodiscard]] bool idle() const { return queue_.empty(); }
  [[nodiscard]] time_point next_end() const { return queue_.front().end; }
  void complete() {
    const pending done = queue_.front();
    queue_.pop_front();
    meter_.end(done.kind, done.bytes, [&] { return done.end; });
  }
  /// All at once at `at`; the time when the last has ended.
  time_point run(time_point at, operation_kind kind, unsigned count, byte_count bytes) {
    for (unsigned i = 0; i < count; ++i) {
      submit(at, kind, bytes);
    }
    time_point end = at;
    while (!idle()) {
      end = next_end();
      complete();
    }
    return end;
  }
  [[nodiscard]] measured_rate rate() const { return meter_.rate(); }

 private:
  struct pending {
    time_point end;
    operation_kind kind;
    byte_count bytes;
  };
  rate_meter meter_;
  double rate_;
  time_point free_at_{};
  std::deque<pending> queue_;
};

constexpr double tolerance = 1e-6;  // the clock has whole nanoseconds
const time_point start = time_point{} + 1s;

TEST(rate_meter, is_exact_while_work_is_queued) {
  simulated_path path(100e6);
  path.run(start, operation_kind::write, 64, 1'000'000);
  EXPECT_NEAR(path.rate().write, 100e6, 100e6 * tolerance);
  EXPECT_EQ(path.rate().read, 0);
}

TEST(rate_meter, idle_time_does_not_count) {
  simulated_path path(100e6);
  time_point at = start;
  for (int i = 0; i < 20; ++i) {
    at = path.run(at, operation_kind::read, 16, 1'000'000) + 10s;
  }
  EXPECT_NEAR(path.rate().read, 100e6, 100e6 * tolerance);
}

TEST(rate_meter, too_little_to_mean_something_is_not_known) {
  simulated_path path(100e6);
  path.run(start, operation_kind::read, 2, 1'000'000);
  EXPECT_EQ(path.rate().read, 0);
}

TEST(rate_meter, a_queue_that_forms_late_in_a_transfer_does_not_flatter) {
  // Each transfer is submitted when the one before it is nine tenths done.
  simulated_path path(100e6);
  constexpr auto each = 10ms;
  for (int i = 0; i < 100; ++i) {
    path.submit(start + i * each - (i == 0 ? 0ms : 1ms), operation_kind::read, 1'000'000);
    if (i > 0) {
      path.complete();
    }
  }
  EXPECT_NEAR(path.rate().read, 100e6, 100e6 * tolerance);
}

TEST(rate_meter, single_transfers_raise_the_estimate_and_never_lower_it) {
  // Alone, a transfer waits 10 ms for the drive and then takes 10 ms: half of the true rate.
  const auto run_singly = [](simulated_path& path, time_point at, int count) {
    for (int i = 0; i < count; ++i) {
      path.submit(at, operation_kind::read, 1'000'000);
      path.complete();
      at += 50ms;
    }
  };
  simulated_path path(50e6);
  run_singly(path, start, 20);
  EXPECT_NEAR(path.rate().read, 50e6, 50e6 * tolerance);  // all that is known
  path.change_rate(100e6);
  path.run(start + 10s, operation_kind::read, 200, 1'000'000);
  EXPECT_NEAR(path.rate().read, 100e6, 100e6 * 1e-3);
  path.change_rate(50e6);
  run_singly(path, start + 20s, 100);
  EXPECT_NEAR(path.rate().read, 100e6, 100e6 * 1e-3);
  path.change_rate(400e6);
  run_singly(path, start + 40s, 400);
  EXPECT_NEAR(path.rate().read, 400e6, 400e6 * 1e-3);
}

TEST(rate_meter, merged_neighbours_that_end_together_count_once) {
  // 16 transfers end every 30 ms. Of the first burst nobody knows how long it took.
  rate_meter meter;
  time_point at = start;
  constexpr unsigned burst = 16;
  for (unsigned i = 0; i < 3 * burst; ++i) {
    meter.begin([&] { return at; });
  }
  for (int k = 0; k < 30; ++k) {
    at += 30ms;
    for (unsigned i = 0; i < burst; ++i) {
      meter.end(operation_kind::write, 65536, [&] { return at; });
      meter.begin([&] { return at; });
    }
  }
  EXPECT_NEAR(meter.rate().write, burst * 65536 / 0.030, 0.01 * burst * 65536 / 0.030);
}

TEST(rate_meter, phases_of_reads_say_nothing_about_writes) {
  simulated_path path(200e6);
  time_point at = path.run(start, operation_kind::write, 100, 1'000'000);
  path.change_rate(50e6);
  at = path.run(at + 1s, operation_kind::read, 100, 1'000'000);
  EXPECT_NEAR(path.rate().write, 200e6, 200e6 * 1e-3);
  EXPECT_NEAR(path.rate().read, 50e6, 50e6 * 1e-3);
  EXPECT_DOUBLE_EQ(rate_under_mix(path.rate(), 1, 1), 2 / (1 / path.rate().read + 1 / path.rate().write));
}

TEST(rate_meter, a_mix_that_is_slower_than_both_alone_lowers_both) {
  simulated_path path(200e6);
  time_point at = path.run(start, operation_kind::write, 100, 1'000'000);
  at = path.run(at, operation_kind::read, 100, 1'000'000);
  path.change_rate(100e6);
  for (int i = 0; i < 200; ++i) {
    path.submit(at, i % 2 == 0 ? operation_kind::read : operation_kind::write, 1'000'000);
  }
  while (!path.idle()) {
    path.complete();
  }
  EXPECT_NEAR(path.rate().write, 100e6, 1e6);
  EXPECT_NEAR(path.rate().read, 100e6, 1e6);
}

/// Iterations of writing and reading `pages` pages over two paths, with a bounded number of chunks under way; pages are
/// placed anew as page_table does it.
class simulated_run {
 public:
  simulated_run(std::size_t pages, std::size_t chunks_per_page, std::size_t in_flight)
      : pages_(pages), in_flight_(in_flight) {
    for (auto& page : pages_) {
      page = dealer_.deal(std::vector<byte_count>(chunks_per_page, chunk), weights_.values());
      dealer_.note(split(page), weights_.values());
    }
  }

  void change_rate(std::size_t path, double rate) { paths_[path].change_rate(rate); }

  /// Bytes per second of one iteration.
  double iterate() {
    const time_point began = now_;
    for (auto& page : pages_) {
      weights_.observe(std::vector{paths_[0].rate(), paths_[1].rate()});
      if (!dealer_.fits(split(page), weights_.values())) {
        page = dealer_.deal(std::vector<byte_count>(page.size(), chunk), weights_.values());
      }
      dealer_.note(split(page), weights_.values());
      move(page, operation_kind::write);
    }
    drain(0);
    for (const auto& page : pages_) {
      move(page, operation_kind::read);
    }
    drain(0);
    const auto bytes = static_cast<double>(2 * chunk * pages_.size() * pages_.front().size());
    return bytes / to_seconds(now_ - began);
  }

 private:
  static constexpr byte_count chunk = 1'000'000;
  using paths_of_page = std::vector<std::uint32_t>;

  static std::vector<byte_count> split(const paths_of_page& p) {
    std::vector<byte_count> bytes(2, 0);
    for (const std::uint32_t path : p) {
      bytes[path] += chunk;
    }
    return bytes;
  }
  void move(const paths_of_page& p, operation_kind kind) {
    for (const std::uint32_t path : p) {
      drain(in_flight_ - 1);
      paths_[path].submit(now_, kind, chunk);
      ++under_way_;
    }
  }
  void drain(std::size_t left) {
    while (under_way_ > left) {
      const bool second = paths_[0].idle() || (!paths_[1].idle() && paths_[1].next_end() < paths_[0].next_end());
      simulated_path& path = paths_[second ? 1 : 0];
      now_ = path.next_end();
      path.complete();
      --under_way_;
    }
  }

  std::vector<paths_of_page> pages_;
  std::size_t in_flight_;
  std::size_t under_way_ = 0;
  time_point now_ = start;
  std::array<simulated_path, 2> paths_{simulated_path{300e6}, simulated_path{100e6}};
  path_weights weights_{{0, 0}};
  share_dealer dealer_{2, chunk, 1};
};

class adaptation : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t, std::size_t>> {};

TEST_P(adaptation, two_paths_reach_their_sum_and_again_within_three_iterations_of_a_slow_down) {
  const auto [pages, chunks, in_flight] = GetParam();
  simulated_run run(pages, chunks, in_flight);
  for (int i = 1; i <= 3; ++i) {
    run.iterate();
  }
  for (int i = 4; i <= 8; ++i) {
    EXPECT_GE(run.iterate(), 0.95 * 400e6) << i;
  }
  run.change_rate(1, 100e6 / 3);
  for (int i = 1; i <= 2; ++i) {
    run.iterate();
  }
  for (int i = 3; i <= 8; ++i) {
    EXPECT_GE(run.iterate(), 0.95 * (300e6 + 100e6 / 3)) << i;
  }
  run.change_rate(1, 900e6);  // and it is found out when it is fast again
  for (int i = 1; i <= 3; ++i) {
    run.iterate();
  }
  for (int i = 4; i <= 8; ++i) {
    EXPECT_GE(run.iterate(), 0.95 * 1200e6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(pages_chunks_in_flight, adaptation,
                         ::testing::Values(std::tuple{256U, 1U, 64U}, std::tuple{256U, 1U, 16U},
                                           std::tuple{16U, 16U, 64U}, std::tuple{64U, 4U, 32U},
                                           std::tuple{1U, 256U, 64U}, std::tuple{1024U, 3U, 32U}));

}  // namespace
}  // namespace forebay::store_detail
