// A path that fails for writing: its writes go on elsewhere within the same transfer, and the caller never knows.
#include <algorithm>
#include <array>
#include <atomic>

#include <gmock/gmock.h>

#include <forebay/base/error.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Fails writes of chosen paths, from the n-th on, for good.
class broken_paths final : public io::interceptor {
 public:
  void break_path(std::size_t path, int error_number, std::uint64_t from = 1) {
    faults_.at(path).from = from;
    faults_.at(path).error_number = error_number;
  }
  void repair(std::size_t path) { faults_.at(path).error_number = 0; }
  void break_reads(std::size_t path, int error_number) { faults_.at(path).read_error = error_number; }
  [[nodiscard]] std::uint64_t writes(std::size_t path) const { return faults_.at(path).writes; }

  void announced(std::span<const int> files) noexcept override {
    for (std::size_t i = 0; i < files.size(); ++i) {
      faults_[i].file = files[i];
    }
  }
  std::int64_t before(const transfer& t) noexcept override {
    for (fault& f : faults_) {
      if (f.file != t.file) {
        continue;
      }
      if (t.kind == io::operation_kind::read) {
        return -f.read_error;
      }
      return ++f.writes >= f.from ? -f.error_number.load() : 0;
    }
    return 0;
  }

 private:
  struct fault {
    std::atomic<int> file{-1};
    std::atomic<int> error_number{0};
    std::atomic<int> read_error{0};
    std::atomic<std::uint64_t> from{1};
    std::atomic<std::uint64_t> writes{0};
  };
  std::array<fault, 4> faults_;
};

class retirement : public ::testing::TestWithParam<io::backend_kind> {
 protected:
  static constexpr byte_count chunk = 16_KiB;

  [[nodiscard]] page_store_options options(const std::vector<byte_count>& capacities, bool direct = true) {
    page_store_options o;
    directories_.clear();
    for (const byte_count capacity : capacities) {
      directories_.push_back(std::make_unique<scratch_directory>());
      o.paths.push_back({directories_.back()->path(), capacity});
    }
    o.chunk = chunk;
    o.adaptive = false;
    o.direct = direct;
    o.io.kind = GetParam();
    o.io.merge = 0;  // so that a write is a chunk
    o.io.faults = &paths_;
    return o;
  }
  static std::vector<unsigned> split(const page_store& store, page_id page) {
    std::vector<unsigned> chunks(store.path_count(), 0);
    for (std::uint64_t i = 0; i < store.chunk_count(page); ++i) {
      ++chunks[store.path_of(page, i)];
    }
    return chunks;
  }
  /// Writes the page with new contents and reads it back.
  void expect_round_trip(page_store& store, page_id page, byte_count bytes, std::uint64_t seed) {
    const std::vector<std::byte> content = random_bytes(bytes, seed);
    std::memcpy(memory_.data(), content.data(), bytes);
    page_mover mover(store);
    mover.write(page, memory_.data());
    std::memset(memory_.data(), 0, bytes);
    mover.read(page, memory_.data());
    EXPECT_EQ(std::memcmp(memory_.data(), content.data(), bytes), 0);
  }
  static std::vector<std::string> of_retirement(const page_store& store) {
    std::vector<std::string> all = store.degradations();
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const std::string& line) { return line.find("retired") == std::string::npos; }),
              all.end());
    return all;
  }

  broken_paths paths_;
  std::vector<std::unique_ptr<scratch_directory>> directories_;
  guarded_buffer memory_{1_MiB};
};

TEST_P(retirement, every_lasting_error_on_every_path_is_written_around) {
  for (const int error_number : {EIO, ENOSPC, EROFS, EDQUOT, EFBIG, ENXIO, EBADF, EPERM}) {
    for (std::size_t path = 0; path < 3; ++path) {
      broken_paths fresh;
      page_store_options o = options({2_MiB, 2_MiB, 2_MiB});
      o.io.faults = &fresh;
      fresh.break_path(path, error_number);
      page_store store(std::move(o));
      const page_id page = store.allocate(24 * chunk, "p");
      EXPECT_THAT(split(store, page), Each(8U));
      expect_round_trip(store, page, 24 * chunk, path);
      EXPECT_EQ(split(store, page)[path], 0U);
      EXPECT_EQ(store.used(), 24 * chunk);
      EXPECT_THAT(of_retirement(store), ElementsAre(AllOf(HasSubstr(directories_[path]->path().string()),
                                                          HasSubstr(strerrorname_np(error_number)))));
      EXPECT_TRUE(store.measured_rates()[path].retired);
      EXPECT_EQ(store.measured_rates()[path].used, 0U);
      EXPECT_EQ(store.measured_rates()[path].share, 0.0);
    }
  }
}

TEST_P(retirement, a_fault_at_every_nth_write_loses_no_byte) {
  for (std::uint64_t nth = 1; nth <= 12; ++nth) {
    broken_paths fresh;
    page_store_options o = options({2_MiB, 2_MiB});
    o.io.faults = &fresh;
    fresh.break_path(nth % 2, ENOSPC, nth);
    page_store store(std::move(o));
    std::vector<page_id> pages;
    std::vector<std::vector<std::byte>> contents;
    page_mover mover(store);
    for (std::uint64_t p = 0; p < 3; ++p) {
      const byte_count bytes = 7 * chunk + 100;
      pages.push_back(store.allocate(bytes, "p"));
      contents.push_back(random_bytes(bytes, nth * 10 + p));
      std::byte* memory = memory_.data() + p * 8 * chunk;
      std::memcpy(memory, contents.back().data(), bytes);
      mover.start(io::operation_kind::write, pages.back(), memory);
    }
    mover.wait();
    std::memset(memory_.data(), 0, memory_.size());
    for (std::size_t p = 0; p < 3; ++p) {
      mover.read(pages[p], memory_.data());
      EXPECT_EQ(std::memcmp(memory_.data(), contents[p].data(), contents[p].size()), 0) << nth << " " << p;
    }
    EXPECT_THAT(of_retirement(store), SizeIs(1));
  }
}

TEST_P(retirement, what_lies_there_is_still_read_and_later_pages_go_elsewhere) {
  page_store store(options({2_MiB, 2_MiB}));
  const page_id old = store.allocate(8 * chunk, "old");
  const std::vector<std::byte> content = random_bytes(8 * chunk, 3);
  std::memcpy(memory_.data(), content.data(), content.size());
  page_mover mover(store);
  mover.write(old, memory_.data());
  paths_.break_path(0, EROFS);
  const page_id hit = store.allocate(4 * chunk, "hit");
  expect_round_trip(store, hit, 4 * chunk, 4);
  const page_id later = store.allocate(8 * chunk, "later");
  EXPECT_THAT(split(store, later), ElementsAre(0, 8));
  EXPECT_THAT(split(store, old), ElementsAre(4, 4));
  mover.read(old, memory_.data());
  EXPECT_EQ(std::memcmp(memory_.data(), content.data(), content.size()), 0);
  const std::uint64_t writes = paths_.writes(0);
  EXPECT_TRUE(store.renew(old));
  EXPECT_THAT(split(store, old), ElementsAre(0, 8));
  expect_round_trip(store, old, 8 * chunk, 5);
  EXPECT_EQ(paths_.writes(0), writes) << "nothing is tried there any more";
}

TEST_P(retirement, a_chunk_that_is_rewritten_alone_leaves_the_retired_path) {
  page_store store(options({2_MiB, 2_MiB}));
  const page_id page = store.allocate(4 * chunk, "p");
  page_mover mover(store);
  mover.write(page, memory_.data());
  paths_.break_path(1, EIO);
  mover.start_chunk(io::operation_kind::write, page, 1, memory_.data());
  mover.wait();
  EXPECT_THAT(split(store, page), ElementsAre(3, 1));
  const std::uint64_t writes = paths_.writes(1);
  mover.start_chunk(io::operation_kind::write, page, 3, memory_.data());
  mover.wait();
  EXPECT_THAT(split(store, page), ElementsAre(4, 0));
  EXPECT_EQ(paths_.writes(1), writes);
}

TEST_P(retirement, without_room_elsewhere_the_first_fault_is_raised_with_all_its_names) {
  page_store store(options({8 * chunk, 8 * chunk}));
  const page_id page = store.allocate(16 * chunk, "h.7.mlp.w");
  paths_.break_path(1, EDQUOT);
  try {
    page_mover(store).write(page, memory_.data());
    ADD_FAILURE();
  } catch (const io_error& found) {
    EXPECT_EQ(found.error_number(), EDQUOT);
    EXPECT_THAT(found.what(),
                AllOf(HasSubstr("storage"), HasSubstr("'h.7.mlp.w'"), HasSubstr(directories_[1]->path().string()),
                      HasSubstr("offset"), HasSubstr("wanted 16384 bytes, got 0"), HasSubstr("EDQUOT")));
  }
  EXPECT_THAT(split(store, page), ElementsAre(8, 8));
  EXPECT_THROW((void)store.allocate(chunk, "more"), capacity_error);
  paths_.repair(1);
  expect_round_trip(store, page, 16 * chunk, 6);  // for want of another place it is tried where it lies
}

TEST_P(retirement, when_all_paths_fail_the_first_fault_is_raised) {
  page_store store(options({2_MiB, 2_MiB, 2_MiB}));
  const page_id page = store.allocate(chunk, "lone");
  paths_.break_path(0, ENOSPC);
  paths_.break_path(1, EROFS);
  paths_.break_path(2, EIO);
  try {
    page_mover(store).write(page, memory_.data());
    ADD_FAILURE();
  } catch (const io_error& found) {
    EXPECT_EQ(found.error_number(), ENOSPC);
    EXPECT_THAT(found.what(),
                AllOf(HasSubstr(directories_[0]->path().string()), HasSubstr("ENOSPC"), HasSubstr("failed too")));
  }
  EXPECT_THAT(of_retirement(store), SizeIs(2)) << "the last path is never retired";
  for (std::size_t path = 0; path < 3; ++path) {
    paths_.repair(path);
  }
  expect_round_trip(store, page, chunk, 7);
}

TEST_P(retirement, one_path_alone_is_not_retired) {
  page_store store(options({2_MiB}));
  const page_id page = store.allocate(chunk, "p");
  paths_.break_path(0, EIO);
  EXPECT_THROW(page_mover(store).write(page, memory_.data()), io_error);
  EXPECT_THAT(of_retirement(store), IsEmpty());
  paths_.repair(0);
  expect_round_trip(store, page, chunk, 8);
}

TEST_P(retirement, neither_reads_nor_impossible_requests_retire_a_path) {
  page_store store(options({2_MiB, 2_MiB}));
  const page_id page = store.allocate(4 * chunk, "p");
  page_mover mover(store);
  mover.write(page, memory_.data());
  paths_.break_reads(0, EIO);
  EXPECT_THROW(mover.read(page, memory_.data()), io_error);
  paths_.break_path(0, EINVAL);
  EXPECT_THROW(mover.write(page, memory_.data()), io_error);
  EXPECT_THAT(of_retirement(store), IsEmpty());
}

TEST_P(retirement, many_failures_at_once_move_every_chunk_once) {
  page_store store(options({8_MiB, 8_MiB, 8_MiB}));
  std::vector<page_id> pages;
  std::vector<std::unique_ptr<guarded_buffer>> buffers;
  std::vector<std::vector<std::byte>> contents;
  constexpr byte_count bytes = 20 * chunk;
  paths_.break_path(0, EIO, 20);
  paths_.break_path(2, ENOSPC, 33);
  page_mover mover(store);
  for (std::uint64_t i = 0; i < 16; ++i) {
    pages.push_back(store.allocate(bytes, "p"));
    contents.push_back(random_bytes(bytes, i));
    buffers.push_back(std::make_unique<guarded_buffer>(bytes));
    std::memcpy(buffers.back()->data(), contents.back().data(), bytes);
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < pages.size(); ++i) {
      mover.start(io::operation_kind::write, pages[i], buffers[i]->data());
    }
    mover.wait();
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::memset(buffers[i]->data(), 0, bytes);
      mover.start(io::operation_kind::read, pages[i], buffers[i]->data());
    }
    mover.wait();
    for (std::size_t i = 0; i < pages.size(); ++i) {
      ASSERT_EQ(std::memcmp(buffers[i]->data(), contents[i].data(), bytes), 0) << i;
    }
  }
  EXPECT_EQ(store.used(), 16 * bytes);
  EXPECT_THAT(of_retirement(store), SizeIs(2));
  byte_count on_paths = 0;
  for (const path_rate& rate : store.measured_rates()) {
    on_paths += rate.used;
  }
  EXPECT_EQ(on_paths, 16 * bytes);
  for (const page_id page : pages) {
    EXPECT_THAT(split(store, page), ElementsAre(0, 20, 0)) << "the second round wrote every chunk elsewhere";
    store.free(page);
  }
  EXPECT_EQ(store.used(), 0U);
}

TEST_P(retirement, buffered_paths_are_written_around_as_well) {
  page_store store(options({2_MiB, 2_MiB}, false));
  paths_.break_path(0, EIO, 3);
  const page_id page = store.allocate(60 * chunk, "p");
  expect_round_trip(store, page, 60 * chunk, 9);
  EXPECT_THAT(of_retirement(store), SizeIs(1));
  expect_round_trip(store, page, 60 * chunk, 10);
  EXPECT_THAT(split(store, page), ElementsAre(0, 60));
}

INSTANTIATE_TEST_SUITE_P(kinds, retirement, ::testing::Values(io::backend_kind::automatic, io::backend_kind::threads),
                         [](const ::testing::TestParamInfo<io::backend_kind>& tested) {
                           return tested.param == io::backend_kind::automatic ? "automatic" : "threads";
                         });

}  // namespace
}  // namespace forebay
