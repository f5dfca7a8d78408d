// Where a store puts pages when its paths are not equal, and what renewing a page does to them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include <forebay/base/error.hpp>
#include <forebay/testing/rate_limited.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr byte_count chunk = 4_KiB;

class placement : public ::testing::Test {
 protected:
  /// Paths of these capacities and weights, whose shares stay as they are set.
  [[nodiscard]] page_store_options options(const std::vector<byte_count>& capacities,
                                           const std::vector<double>& weights = {}) {
    page_store_options o;
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      directories_.push_back(std::make_unique<scratch_directory>());
      o.paths.push_back({directories_.back()->path(), capacities[i]});
      o.paths.back().weight = weights.empty() ? 0 : weights[i];
    }
    o.chunk = chunk;
    o.adaptive = false;
    return o;
  }
  /// Chunks of a page on each path.
  static std::vector<unsigned> split(const page_store& store, page_id page) {
    std::vector<unsigned> chunks(store.path_count(), 0);
    for (std::uint64_t i = 0; i < store.chunk_count(page); ++i) {
      ++chunks[store.path_of(page, i)];
    }
    return chunks;
  }
  void write(page_store& store, page_id page) { page_mover(store).write(page, memory_.data()); }

  std::vector<std::unique_ptr<scratch_directory>> directories_;
  guarded_buffer memory_{1_MiB};
};

TEST_F(placement, shares_hold_inside_a_large_page_to_the_chunk) {
  page_store store(options({8_MiB, 8_MiB}, {3, 1}));
  const page_id page = store.allocate(64 * chunk, "large");
  EXPECT_THAT(split(store, page), ElementsAre(48, 16));
  unsigned on_first = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    on_first += store.path_of(page, i) == 0 ? 1U : 0U;
    EXPECT_LE(std::abs(static_cast<double>(on_first) - 0.75 * static_cast<double>(i + 1)), 1.0) << "all along the page";
  }
}

TEST_F(placement, shares_hold_over_pages_of_one_chunk) {
  page_store store(options({8_MiB, 8_MiB, 8_MiB}, {5, 3, 2}));
  std::vector<unsigned> chunks(3, 0);
  for (unsigned i = 1; i <= 100; ++i) {
    ++chunks[store.path_of(store.allocate(100, "small"), 0)];
    EXPECT_LE(chunks[0], 0.5 * i + 1);
    EXPECT_LE(chunks[1], 0.3 * i + 1);
    EXPECT_LE(chunks[2], 0.2 * i + 1);
  }
  EXPECT_THAT(chunks, ElementsAre(50, 30, 20));
}

TEST_F(placement, a_path_of_little_room_gives_that_room_to_every_page_alike) {
  // Equal weights, but only a quarter of what is reserved fits the second path.
  page_store store(options({8_MiB, 64 * chunk}));
  store.reserve(256 * chunk);
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(split(store, store.allocate(32 * chunk, "p")), ElementsAre(24, 8)) << i;
  }
}

TEST_F(placement, reserving_follows_the_weights) {
  page_store store(options({8_MiB, 8_MiB}, {3, 1}));
  store.reserve(4_MiB);
  std::vector<byte_count> sizes;
  for (const auto& directory : directories_) {
    for (const auto& entry : std::filesystem::directory_iterator(directory->path())) {
      if (entry.path().extension() == ".pages") {
        sizes.push_back(entry.file_size());
      }
    }
  }
  EXPECT_THAT(sizes, ElementsAre(3_MiB, 1_MiB));
}

TEST_F(placement, renewing_follows_new_weights_and_empties_the_page) {
  page_store store(options({8_MiB, 8_MiB}));
  const page_id page = store.allocate(64 * chunk, "p");
  EXPECT_FALSE(store.renew(page)) << "just placed";
  write(store, page);
  EXPECT_FALSE(store.renew(page)) << "as the weights want it";
  page_mover(store).read(page, memory_.data());
  store.weigh_paths({3, 1});
  EXPECT_THAT(split(store, page), ElementsAre(32, 32));
  const byte_count used = store.used();
  EXPECT_TRUE(store.renew(page));
  EXPECT_THAT(split(store, page), ElementsAre(48, 16));
  EXPECT_EQ(store.used(), used);
  EXPECT_EQ(store.peak(), used);
  EXPECT_THROW(page_mover(store).read(page, memory_.data()), usage_error);
  write(store, page);
  page_mover(store).read(page, memory_.data());
  EXPECT_FALSE(store.renew(page));
}

TEST_F(placement, renewing_keeps_the_shares_all_along_the_pages_of_one_chunk) {
  page_store store(options({8_MiB, 8_MiB}));
  std::vector<page_id> pages;
  for (int i = 0; i < 200; ++i) {
    pages.push_back(store.allocate(chunk, "p"));
    write(store, pages.back());
  }
  store.weigh_paths({9, 1});
  unsigned on_second = 0;
  unsigned moved = 0;
  for (unsigned i = 0; i < pages.size(); ++i) {
    moved += store.renew(pages[i]) ? 1U : 0U;
    write(store, pages[i]);
    on_second += store.path_of(pages[i], 0) == 1 ? 1U : 0U;
    EXPECT_LE(std::abs(on_second - 0.1 * (i + 1)), 2.0) << i;
  }
  EXPECT_GE(moved, 78U);  // 100 lay there and 20 may
  EXPECT_LE(moved, 100U);
  for (const page_id page : pages) {
    EXPECT_LE(store.renew(page) ? 1 : 0, 0) << "nothing more to do in the second round";
  }
}

TEST_F(placement, a_page_that_finds_no_room_elsewhere_stays_and_keeps_its_contents) {
  page_store store(options({32 * chunk, 64 * chunk}));
  const page_id page = store.allocate(32 * chunk, "p");       // 16 and 16
  const page_id filler = store.allocate(32 * chunk, "fill");  // takes the rest of the first path
  EXPECT_THAT(split(store, page), ElementsAre(16, 16));
  EXPECT_THAT(split(store, filler), ElementsAre(16, 16));
  const std::vector<std::byte> content = random_bytes(32 * chunk, 1);
  std::memcpy(memory_.data(), content.data(), content.size());
  write(store, page);
  store.weigh_paths({1, 0.001});
  EXPECT_FALSE(store.renew(page));
  std::memset(memory_.data(), 0, content.size());
  page_mover(store).read(page, memory_.data());
  EXPECT_EQ(std::memcmp(memory_.data(), content.data(), content.size()), 0);
  store.free(filler);
  EXPECT_TRUE(store.renew(page));
  EXPECT_THAT(split(store, page), ElementsAre(32, 0));
  EXPECT_EQ(store.used(), 32 * chunk);
}

TEST_F(placement, renewing_never_takes_the_room_of_pages_to_come) {
  // Pages of one chunk and a half: those that move leave holes that no chunk fits.
  constexpr byte_count large_chunk = 4 * chunk;
  constexpr byte_count bytes = large_chunk + large_chunk / 2;
  constexpr byte_count count = 24;
  page_store_options o = options({count / 2 * bytes, count / 2 * bytes});
  o.chunk = large_chunk;
  page_store store(std::move(o));
  store.reserve(count * bytes);
  std::mt19937_64 random(5);
  std::vector<page_id> pages;
  for (byte_count i = 0; i < count; ++i) {
    pages.push_back(store.allocate(bytes, "p"));
    write(store, pages.back());
    for (unsigned k = 0; k < 8; ++k) {
      store.weigh_paths({static_cast<double>(1 + random() % 9), static_cast<double>(1 + random() % 9)});
      const page_id page = pages[random() % pages.size()];
      store.renew(page);
      write(store, page);
    }
  }
  EXPECT_EQ(store.used(), count * bytes);
}

/// Holds every transfer before it starts, until it is let go.
class closed_door final : public io::interceptor {
 public:
  void open() {
    open_ = true;
    open_.notify_all();
  }
  std::int64_t before(const transfer&) noexcept override {
    open_.wait(false);
    return 0;
  }

 private:
  std::atomic<bool> open_{false};
};

TEST_F(placement, a_page_in_flight_is_not_renewed) {
  closed_door door;
  page_store_options o = options({8_MiB, 8_MiB});
  o.io.faults = &door;
  page_store store(std::move(o));
  const page_id page = store.allocate(4 * chunk, "p");
  page_mover mover(store);
  mover.start(io::operation_kind::write, page, memory_.data());
  EXPECT_THROW(store.renew(page), usage_error);
  door.open();
  mover.wait();
  store.weigh_paths({1, 0.001});
  EXPECT_TRUE(store.renew(page));
  EXPECT_THROW(store.renew(page_id{7, 7}), usage_error);
}

TEST_F(placement, full_paths_are_named_with_what_they_have) {
  page_store store(options({16 * chunk, 16 * chunk}));
  try {
    store.reserve(33 * chunk);
    ADD_FAILURE();
  } catch (const capacity_error& refused) {
    EXPECT_THAT(
        refused.what(),
        ::testing::AllOf(HasSubstr("132 KiB"), HasSubstr("128 KiB"), HasSubstr(directories_[0]->path().string()),
                         HasSubstr(directories_[1]->path().string()), HasSubstr("64 KiB free of 64 KiB")));
  }
}

/// Weights, sizes, frees and renewals at random: every byte read back, no path over its capacity, no byte leaked.
class random_placement : public placement, public ::testing::WithParamInterface<int> {};
TEST_P(random_placement, loses_and_overlaps_nothing) {
  const std::vector<byte_count> capacities{96 * chunk, 40 * chunk, 160 * chunk};
  page_store store(options(capacities));
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  struct live {
    page_id page;
    std::vector<std::byte> content;
  };
  std::vector<live> pages;
  byte_count expected = 0;
  const auto rewrite = [&](live& p) {
    p.content = random_bytes(p.content.size(), random());
    std::memcpy(memory_.data(), p.content.data(), p.content.size());
    write(store, p.page);
  };
  const auto check = [&](const live& p) {
    std::memset(memory_.data(), 0, p.content.size());
    page_mover(store).read(p.page, memory_.data());
    ASSERT_EQ(std::memcmp(memory_.data(), p.content.data(), p.content.size()), 0);
  };
  for (int round = 0; round < 400; ++round) {
    const unsigned act = pages.empty() ? 0 : static_cast<unsigned>(random() % 4);
    if (act == 0) {
      const byte_count bytes = 1 + random() % (40 * chunk);
      try {
        pages.push_back({store.allocate(bytes, "p"), std::vector<std::byte>(bytes)});
        expected += store.padded_bytes(bytes);
        rewrite(pages.back());
      } catch (const capacity_error&) {
        EXPECT_GT(store.used() + store.padded_bytes(bytes), store.capacity() - 3 * chunk);
      }
    } else if (act == 1) {
      const std::size_t i = random() % pages.size();
      check(pages[i]);
      store.free(pages[i].page);
      expected -= store.padded_bytes(pages[i].content.size());
      pages.erase(pages.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (act == 2) {
      store.weigh_paths({1.0 + static_cast<double>(random() % 9), 1.0, 1.0 + static_cast<double>(random() % 9)});
    } else {
      live& p = pages[random() % pages.size()];
      store.renew(p.page);
      rewrite(p);
    }
    ASSERT_EQ(store.used(), expected);
    std::vector<byte_count> on(3, 0);
    for (const live& p : pages) {
      for (std::uint64_t i = 0; i < store.chunk_count(p.page); ++i) {
        on[store.path_of(p.page, i)] += store.padded_chunk_bytes(p.page, i);
      }
    }
    const std::vector<path_rate> rates = store.measured_rates();
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_LE(on[i], capacities[i]);
      ASSERT_EQ(rates[i].used, on[i]);
    }
  }
  for (const live& p : pages) {
    check(p);
    store.free(p.page);
  }
  EXPECT_EQ(store.used(), 0U);
}

INSTANTIATE_TEST_SUITE_P(seeds, random_placement, ::testing::Range(1, 5));

/// The wiring from completions to shares: a path held to 2 MB/s beside one of 40 MB/s. It takes a machine below 8 MB/s
/// to fail.
TEST_F(placement, what_is_measured_moves_the_shares) {
  testing::rate_limited limits({{0, 40'000'000, 0}, {0, 2'000'000, 0}});
  page_store_options o = options({8_MiB, 8_MiB});
  o.chunk = 32_KiB;
  o.adaptive = true;
  o.io.faults = &limits;
  page_store store(std::move(o));
  const page_id page = store.allocate(1_MiB, "p");
  EXPECT_THAT(split(store, page), ElementsAre(16, 16));
  write(store, page);
  const std::vector<path_rate> rates = store.measured_rates();
  EXPECT_LT(rates[1].write_bytes_per_second, 2.2e6);
  EXPECT_GT(rates[1].write_bytes_per_second, 0);
  EXPECT_EQ(rates[1].read_bytes_per_second, 0);
  EXPECT_EQ(rates[1].directory, directories_[1]->path());
  for (int i = 0; i < 20 && store.measured_rates()[0].write_bytes_per_second == 0; ++i) {
    const page_id more = store.allocate(1_MiB, "more");  // until the fast one has worked long enough to be measured
    write(store, more);
    store.free(more);
  }
  EXPECT_TRUE(store.renew(page));
  EXPECT_GT(store.measured_rates()[0].share, 0.8);
  EXPECT_GE(split(store, page)[0], 25U);
}

TEST_F(placement, the_cost_of_checksums_is_known_and_nothing_without_them) {
  for (const bool checksums : {true, false}) {
    page_store_options o = options({8_MiB});
    o.checksums = checksums;
    page_store store(std::move(o));
    write(store, store.allocate(1_MiB, "p"));
    EXPECT_EQ(store.checksum_seconds() > 0, checksums);
  }
}

}  // namespace
}  // namespace forebay
