// Emulated rates: the arithmetic of a link, and that a store keeps to it. Lower bounds only: they hold on any machine.
#include <gmock/gmock.h>

#include <forebay/store/detail/link_pacer.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_detail::link_pacer;
using store_detail::paced_link;
using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::scratch_directory;
using namespace std::chrono_literals;

TEST(paced_link, transfers_follow_one_another) {
  paced_link link(1'000'000);
  const time_point t0 = time_point{} + 1s;
  EXPECT_EQ(link.reserve(1000, t0), t0 + 1ms);
  EXPECT_EQ(link.reserve(2000, t0), t0 + 3ms);
  EXPECT_EQ(link.reserve(500, t0 + 2ms), t0 + 3500us);
  EXPECT_EQ(link.reserve(1000, t0 + 10ms), t0 + 11ms);  // it was idle meanwhile
}

TEST(paced_link, does_not_drift_while_busy) {
  paced_link link(3'000'000'000);  // a byte is no whole number of nanoseconds
  const time_point t0 = time_point{} + 1s;
  time_point end{};
  constexpr byte_count each = 1'000'003;
  constexpr byte_count count = 30'000;
  for (byte_count i = 0; i < count; ++i) {
    end = link.reserve(each, t0);
  }
  const double exact_nanoseconds = static_cast<double>(each * count) / 3.0;
  EXPECT_NEAR(static_cast<double>((end - t0).count()), exact_nanoseconds, 2.0);
}

/// Holds every read until a fixed time.
class always_held final : public io::interceptor {
 public:
  time_point hold_until(const transfer&) noexcept override { return time; }
  time_point time;
};

TEST(link_pacer, files_and_directions_are_links_of_their_own) {
  link_pacer pacer(nullptr);
  pacer.limit(3, 1000, 0);
  pacer.limit(4, 1000, 10);
  const auto ask = [&](int file, io::operation_kind kind) { return pacer.hold_until({kind, file, 0, nullptr, 1000}); };
  const time_point now = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(3, io::operation_kind::write), time_point{});  // not limited
  EXPECT_EQ(ask(5, io::operation_kind::read), time_point{});
  EXPECT_GE(ask(3, io::operation_kind::read), now + 1s);
  EXPECT_GE(ask(3, io::operation_kind::read), now + 2s);
  EXPECT_LT(ask(4, io::operation_kind::read), now + 60s);  // not behind the other file's
  EXPECT_GE(ask(4, io::operation_kind::write), now + 100s);
}

TEST(link_pacer, what_holds_longer_wins) {
  always_held inner;
  link_pacer pacer(&inner);
  pacer.limit(3, 1'000'000'000, 0);
  inner.time = std::chrono::steady_clock::now() + 3600s;
  EXPECT_EQ(pacer.hold_until({io::operation_kind::read, 3, 0, nullptr, 1}), inner.time);
}

class paced_store : public ::testing::TestWithParam<io::backend_kind> {};

TEST_P(paced_store, takes_at_least_what_the_rates_say_and_the_paths_work_at_once) {
  scratch_directory first;
  scratch_directory second;
  page_store_options o;
  o.paths.push_back({first.path(), 8_MiB, 40 * 1'000'000, 20 * 1'000'000});
  o.paths.push_back({second.path(), 8_MiB, 40 * 1'000'000, 20 * 1'000'000});
  o.chunk = 64_KiB;
  o.io.kind = GetParam();
  telemetry::timeline timeline;
  page_store store(std::move(o), &timeline);
  page_mover mover(store);
  constexpr byte_count bytes = 4_MiB;
  const page_id page = store.allocate(bytes, "paced");
  guarded_buffer memory(bytes);
  const time_point start = std::chrono::steady_clock::now();
  mover.write(page, memory.data());
  const time_point middle = std::chrono::steady_clock::now();
  mover.read(page, memory.data());
  const time_point end = std::chrono::steady_clock::now();
  EXPECT_GE(to_seconds(middle - start), static_cast<double>(bytes) / 2 / 20e6);
  EXPECT_GE(to_seconds(end - middle), static_cast<double>(bytes) / 2 / 40e6);

  // Lanes: every chunk once, in order, none overlapping another.
  EXPECT_THAT(timeline.lanes(),
              ::testing::ElementsAre("storage 0 read", "storage 0 write", "storage 1 read", "storage 1 write"));
  std::vector<byte_count> moved(4, 0);
  std::vector<time_point> last(4);
  for (const telemetry::slice& s : timeline.slices()) {
    EXPECT_EQ(s.name, "paced");
    EXPECT_GE(s.start, last[s.lane]);
    EXPECT_GE(s.end, s.start);
    last[s.lane] = s.end;
    moved[s.lane] += s.bytes;
  }
  EXPECT_THAT(moved, ::testing::Each(bytes / 2));
}

INSTANTIATE_TEST_SUITE_P(kinds, paced_store, ::testing::Values(io::backend_kind::automatic, io::backend_kind::threads),
                         [](const ::testing::TestParamInfo<io::backend_kind>& tested) {
                           return tested.param == io::backend_kind::automatic ? "automatic" : "threads";
                         });

}  // namespace
}  // namespace forebay
