// The mover alone: every route, odd sizes, few staging chunks, and what overtakes what.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include <forebay/device/emulated_device.hpp>
#include <forebay/memory/host_arena.hpp>
#include <forebay/transfer/mover.hpp>

namespace forebay {
namespace {

constexpr byte_count chunk = 16_KiB;
constexpr byte_count largest = 8 * chunk + 4_KiB;

class mover_test : public ::testing::Test {
 protected:
  mover_test() {
    page_store_options o;
    o.paths.push_back({.directory = directory / "a"});
    o.paths.push_back({.directory = directory / "b"});
    o.chunk = chunk;
    store.emplace(std::move(o));
    store->reserve(8 * largest);
    for (byte_count i = 0; i < 2; ++i) {
      staging.add(host.memory().data() + 4 * largest + i * chunk);
    }
    carrier.emplace(
        *device, &*store, staging, mover_options{.copy_piece = 2 * chunk, .copies_in_flight = 2},
        [this] {
          const std::scoped_lock lock(mutex);
          ++woken;
          changed.notify_one();
        },
        nullptr);
  }
  ~mover_test() override {
    carrier.reset();
    store.reset();
    std::filesystem::remove_all(directory);
  }

  // Runs all started moves to their ends, in the order in which they ended.
  std::vector<move*> run(std::size_t count) {
    std::vector<move*> ended;
    for (;;) {
      carrier->advance(ended);
      if (ended.size() == count) {
        return ended;
      }
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return woken != seen; });
      seen = woken;
    }
  }

  void go(route way, std::byte* on_device, std::byte* in_host, page_id page, byte_count bytes) {
    move m;
    m.way = way;
    m.device = on_device;
    m.host = in_host;
    m.page = page;
    m.bytes = bytes;
    carrier->start(m);
    ASSERT_EQ(run(1).front(), &m);
    ASSERT_EQ(m.failure, nullptr);
    EXPECT_TRUE(carrier->idle());
    EXPECT_EQ(staging.available(), 2U);
  }

  static void fill(std::byte* to, byte_count bytes, unsigned seed) {
    for (byte_count i = 0; i < bytes; ++i) {
      to[i] = static_cast<std::byte>(i * 31 + i / 4096 + seed);
    }
  }

  std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("forebay-mover-test-" + std::to_string(getpid()));
  std::unique_ptr<forebay::device> device = emulated_device({.capacity = 4 * largest});
  host_arena host{4 * largest + 2 * chunk};
  staging_pool staging;
  std::optional<page_store> store;
  std::optional<mover> carrier;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t woken = 0;
  std::uint64_t seen = 0;
};

TEST_F(mover_test, a_round_trip_over_all_routes_keeps_every_byte) {
  std::byte* const on_device = device->arena().data();
  std::byte* const in_host = host.memory().data();
  for (const byte_count bytes : {4_KiB, chunk, chunk + 4_KiB, 2 * chunk, largest}) {
    const page_id first = store->allocate(bytes, "first");
    const page_id second = store->allocate(bytes, "second");
    std::vector<std::byte> expected(bytes);
    fill(expected.data(), bytes, static_cast<unsigned>(bytes));
    std::copy(expected.begin(), expected.end(), in_host);
    go(route::host_to_device, on_device, in_host, {}, bytes);
    go(route::device_to_storage, on_device, nullptr, first, bytes);
    fill(on_device, bytes, 1);
    fill(in_host, bytes, 2);
    go(route::storage_to_host, nullptr, in_host, first, bytes);
    go(route::host_to_storage, nullptr, in_host, second, bytes);
    fill(in_host, bytes, 3);
    go(route::storage_to_device, on_device + largest, nullptr, second, bytes);
    go(route::device_to_host, on_device + largest, in_host + largest, {}, bytes);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in_host + largest)) << bytes;
    go(route::storage_to_device, on_device + 2 * largest, in_host + 2 * largest, second, bytes);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), on_device + 2 * largest)) << bytes;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in_host + 2 * largest)) << "the host copy on the way";
    store->free(first);
    store->free(second);
  }
}

TEST_F(mover_test, what_is_wanted_now_overtakes_what_was_started_before) {
  std::byte* const in_host = host.memory().data();
  fill(in_host, largest, 5);
  std::array<move, 3> background;
  for (std::size_t i = 0; i < background.size(); ++i) {
    background[i].way = route::host_to_device;
    background[i].device = device->arena().data() + i * largest;
    background[i].host = in_host;
    background[i].bytes = largest;
    background[i].priority = 7;
    carrier->start(background[i]);
  }
  move urgent = background[0];
  urgent.device = device->arena().data() + 3 * largest;
  urgent.priority = 0;
  carrier->start(urgent);
  const std::vector<move*> ended = run(4);
  EXPECT_EQ(ended.front(), &urgent);
  EXPECT_EQ(carrier->h2d_use().bytes, 4 * largest);
  EXPECT_EQ(carrier->h2d_use().in_flight, 0U);
}

TEST_F(mover_test, a_move_that_fails_is_drained_and_says_why) {
  const page_id never_written = store->allocate(largest, "never_written");
  move m;
  m.way = route::storage_to_device;
  m.device = device->arena().data();
  m.page = never_written;
  m.bytes = largest;
  carrier->start(m);
  ASSERT_EQ(run(1).front(), &m);
  EXPECT_NE(m.failure, nullptr);
  EXPECT_EQ(staging.available(), 2U);
  EXPECT_TRUE(carrier->idle());
}

TEST_F(mover_test, it_can_be_destroyed_with_moves_under_way) {
  const page_id page = store->allocate(largest, "page");
  fill(host.memory().data(), largest, 9);
  go(route::host_to_storage, nullptr, host.memory().data(), page, largest);
  move down;
  down.way = route::storage_to_device;
  down.device = device->arena().data();
  down.page = page;
  down.bytes = largest;
  carrier->start(down);
  std::vector<move*> ended;
  carrier->advance(ended);
  carrier.reset();
  EXPECT_EQ(down.in_flight, 0U);
}

}  // namespace
}  // namespace forebay
