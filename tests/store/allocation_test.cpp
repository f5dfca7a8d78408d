// Where pages lie: striping, capacity to the byte, reuse, growth.
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <forebay/base/error.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;
using ::testing::HasSubstr;

class allocation : public ::testing::Test {
 protected:
  [[nodiscard]] page_store_options options(std::vector<byte_count> capacities, byte_count chunk = 64_KiB) {
    page_store_options o;
    for (const byte_count capacity : capacities) {
      directories_.push_back(std::make_unique<scratch_directory>());
      o.paths.push_back({directories_.back()->path(), capacity});
    }
    o.chunk = chunk;
    return o;
  }
  std::vector<std::unique_ptr<scratch_directory>> directories_;
};

TEST_F(allocation, chunks_go_round_the_paths) {
  page_store store(options({8_MiB, 8_MiB, 8_MiB}));
  EXPECT_EQ(store.path_count(), 3U);
  const page_id page = store.allocate(7 * 64_KiB + 1, "p");
  ASSERT_EQ(store.chunk_count(page), 8U);
  for (std::uint64_t i = 0; i + 1 < 8; ++i) {
    EXPECT_EQ(store.path_of(page, i + 1), (store.path_of(page, i) + 1) % 3);
    EXPECT_EQ(store.padded_chunk_bytes(page, i), 64_KiB);
  }
  EXPECT_EQ(store.padded_chunk_bytes(page, 7), store.padded_bytes(1));
}

TEST_F(allocation, small_pages_spread_over_the_paths) {
  page_store store(options({8_MiB, 8_MiB, 8_MiB}));
  std::map<std::size_t, int> pages;
  for (int i = 0; i < 30; ++i) {
    ++pages[store.path_of(store.allocate(100, "small"), 0)];
  }
  EXPECT_THAT(pages, ::testing::ElementsAre(::testing::Pair(0, 10), ::testing::Pair(1, 10), ::testing::Pair(2, 10)));
}

TEST_F(allocation, every_byte_is_counted_and_comes_back) {
  page_store store(options({4_MiB}));
  EXPECT_EQ(store.capacity(), 4_MiB);
  const page_id a = store.allocate(100'000, "a");
  const page_id b = store.allocate(1, "b");
  const byte_count both = store.padded_bytes(100'000) + store.padded_bytes(1);
  EXPECT_EQ(store.used(), both);
  store.free(a);
  EXPECT_EQ(store.used(), store.padded_bytes(1));
  store.free(b);
  EXPECT_EQ(store.used(), 0U);
  EXPECT_EQ(store.peak(), both);
}

TEST_F(allocation, padding_is_below_a_page_of_memory) {
  page_store store(options({4_MiB}));
  for (const byte_count bytes : {1_B, 4095_B, 4096_B, 4097_B, 100'000_B}) {
    EXPECT_GE(store.padded_bytes(bytes), bytes);
    EXPECT_LT(store.padded_bytes(bytes), bytes + 4096);
  }
}

TEST_F(allocation, the_last_byte_can_be_used_and_one_more_is_refused_with_the_figures) {
  for (const std::size_t paths : {1U, 3U}) {
    page_store_options o = options(std::vector<byte_count>(paths, 1_MiB));
    const std::string directory = o.paths.back().directory.string();
    page_store store(std::move(o));
    const page_id page = store.allocate(paths * 1_MiB - 4096, "most");
    try {
      (void)store.allocate(4097, "too much");
      ADD_FAILURE();
    } catch (const capacity_error& full) {
      EXPECT_THAT(full.what(), ::testing::AllOf(HasSubstr("'too much'"), HasSubstr("8 KiB"), HasSubstr("4 KiB"),
                                                HasSubstr(directory)));
    }
    (void)store.allocate(4096, "rest");
    EXPECT_EQ(store.used(), store.capacity());
    EXPECT_THROW((void)store.allocate(1, "x"), capacity_error);
    store.free(page);
    EXPECT_EQ(store.used(), 4096U);
  }
}

TEST_F(allocation, unequal_paths_are_filled_to_the_last_byte) {
  page_store store(options({256_KiB, 1_MiB, 512_KiB}));
  std::vector<page_id> pages;
  while (store.used() < store.capacity()) {
    pages.push_back(store.allocate(std::min<byte_count>(192_KiB, store.capacity() - store.used()), "p"));
  }
  std::map<std::size_t, byte_count> bytes;
  for (const page_id page : pages) {
    for (std::uint64_t i = 0; i < store.chunk_count(page); ++i) {
      bytes[store.path_of(page, i)] += store.padded_chunk_bytes(page, i);
    }
  }
  EXPECT_EQ(bytes[0], 256_KiB);
  EXPECT_EQ(bytes[1], 1_MiB);
  EXPECT_EQ(bytes[2], 512_KiB);
}

TEST_F(allocation, scattered_holes_are_used_when_there_is_no_large_one) {
  page_store store(options({1_MiB}));
  std::vector<page_id> pages;
  for (int i = 0; i < 16; ++i) {
    pages.push_back(store.allocate(64_KiB, "p"));
  }
  for (std::size_t i = 0; i < 16; i += 2) {
    store.free(pages[i]);
  }
  const page_id page = store.allocate(512_KiB, "in eight holes");
  const std::vector<std::byte> content = random_bytes(512_KiB, 1);
  guarded_buffer memory(512_KiB);
  std::memcpy(memory.data(), content.data(), content.size());
  page_mover mover(store);
  mover.write(page, memory.data());
  std::memset(memory.data(), 0, memory.size());
  mover.read(page, memory.data());
  EXPECT_EQ(std::memcmp(memory.data(), content.data(), content.size()), 0);
}

TEST_F(allocation, random_allocations_never_overlap) {
  page_store store(options({2_MiB, 1_MiB, 3_MiB}, 32_KiB));
  page_mover mover(store);
  std::mt19937_64 random(11);
  struct live {
    page_id page;
    std::vector<std::byte> content;
  };
  std::vector<live> pages;
  guarded_buffer memory(1_MiB);
  byte_count expected = 0;
  for (int round = 0; round < 400; ++round) {
    const byte_count bytes = 1 + random() % 600'000;
    if (random() % 2 == 0 && store.padded_bytes(bytes) <= store.capacity() - store.used()) {
      try {
        live added{store.allocate(bytes, "p"), random_bytes(bytes, random())};
        std::memcpy(memory.data(), added.content.data(), bytes);
        mover.write(added.page, memory.data());
        expected += store.padded_bytes(bytes);
        pages.push_back(std::move(added));
      } catch (const capacity_error&) {  // holes smaller than a chunk everywhere
      }
    } else if (!pages.empty()) {
      const std::size_t i = random() % pages.size();
      mover.read(pages[i].page, memory.data());
      ASSERT_EQ(std::memcmp(memory.data(), pages[i].content.data(), pages[i].content.size()), 0);
      store.free(pages[i].page);
      expected -= store.padded_bytes(pages[i].content.size());
      pages.erase(pages.begin() + static_cast<std::ptrdiff_t>(i));
    }
    ASSERT_EQ(store.used(), expected);
  }
}

TEST_F(allocation, reserving_takes_the_disk_space_beforehand) {
  page_store store(options({8_MiB, 8_MiB}));
  const auto on_disk = [&] {
    byte_count all = 0;
    for (const auto& directory : directories_) {
      for (const auto& entry : std::filesystem::directory_iterator(directory->path())) {
        struct stat status {};
        EXPECT_EQ(::stat(entry.path().c_str(), &status), 0);
        all += entry.path().extension() == ".pages" ? byte_count(status.st_blocks) * 512 : 0;
      }
    }
    return all;
  };
  EXPECT_EQ(on_disk(), 0U);
  store.reserve(6_MiB);
  EXPECT_GE(on_disk(), 6_MiB);
  EXPECT_LT(on_disk(), 7_MiB);
  store.reserve(16_MiB);
  EXPECT_GE(on_disk(), 16_MiB);
  try {
    store.reserve(16_MiB + 1);
    ADD_FAILURE();
  } catch (const capacity_error& refused) {
    EXPECT_THAT(refused.what(), ::testing::AllOf(HasSubstr("16 MiB"), HasSubstr(directories_[0]->path().string())));
  }
}

TEST_F(allocation, more_than_the_disk_has_is_refused_when_reserved) {
  page_store store(options({1'000_TiB}));
  try {
    store.reserve(900_TiB);
    ADD_FAILURE();
  } catch (const capacity_error& refused) {
    EXPECT_THAT(refused.what(),
                ::testing::AllOf(HasSubstr("900 TiB"), HasSubstr("free"), HasSubstr(directories_[0]->path().string())));
  }
}

TEST_F(allocation, no_capacity_given_means_what_is_free_shared_by_the_paths_of_one_disk) {
  page_store store(options({0, 0}));
  const auto free_bytes = std::filesystem::space(directories_[0]->path()).available;
  EXPECT_GT(store.capacity(), free_bytes / 2);  // others write to this disk too
  EXPECT_LT(store.capacity(), free_bytes + free_bytes / 2);
}

TEST_F(allocation, stale_and_foreign_ids_are_refused) {
  page_store store(options({1_MiB}));
  const page_id page = store.allocate(100, "p");
  store.free(page);
  EXPECT_THROW(store.free(page), usage_error);
  EXPECT_THROW((void)store.chunk_count(page), usage_error);
  const page_id reused = store.allocate(100, "q");
  EXPECT_EQ(reused.index, page.index);
  EXPECT_THROW(store.free(page), usage_error);
  EXPECT_THROW((void)store.chunk_count(page_id{}), usage_error);
  EXPECT_THROW((void)store.path_of(reused, 1), usage_error);
  EXPECT_THROW((void)store.allocate(0, "none"), usage_error);
}

TEST_F(allocation, wrong_options_are_refused) {
  EXPECT_THROW(page_store{page_store_options{}}, usage_error);
  page_store_options odd = options({1_MiB});
  odd.chunk = 5000;
  EXPECT_THROW(page_store{std::move(odd)}, usage_error);
  page_store_options small = options({1_MiB});
  small.chunk = 2048;
  EXPECT_THROW(page_store{std::move(small)}, usage_error);
  page_store_options coarse = options({1_MiB}, 4096);
  coarse.least_alignment = 65536;
  EXPECT_THROW(page_store{std::move(coarse)}, usage_error);
  for (const auto& directory : directories_) {
    EXPECT_TRUE(std::filesystem::is_empty(directory->path())) << "a refused store leaves nothing";
  }
}

}  // namespace
}  // namespace forebay
