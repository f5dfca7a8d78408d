// What the store makes of faults: wrong bytes, errors, full disks, transfers in flight at the end.
#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include <forebay/base/error.hpp>
#include <forebay/testing/io_faults.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;
using testing::fault_trigger;
using ::testing::HasSubstr;
using testing::io_faults;
using namespace std::chrono_literals;

class faulty_store : public ::testing::TestWithParam<io::backend_kind> {
 protected:
  [[nodiscard]] page_store_options options(io_faults& faults, std::size_t paths = 2) {
    page_store_options o;
    for (std::size_t i = 0; i < paths; ++i) {
      directories_.push_back(std::make_unique<scratch_directory>());
      o.paths.push_back({directories_.back()->path(), 16_MiB});
    }
    o.chunk = 64_KiB;
    o.io.kind = GetParam();
    o.io.faults = &faults;
    return o;
  }
  std::vector<std::unique_ptr<scratch_directory>> directories_;
};

TEST_P(faulty_store, a_bit_that_is_wrong_once_is_read_again) {
  io_faults faults(1);
  page_store store(options(faults));
  page_mover mover(store);
  const std::vector<std::byte> content = random_bytes(512_KiB, 1);
  guarded_buffer memory(512_KiB);
  std::memcpy(memory.data(), content.data(), content.size());
  const page_id page = store.allocate(512_KiB, "flipped");
  mover.write(page, memory.data());
  faults.flip_bit(fault_trigger::nth(3));
  mover.read(page, memory.data());
  EXPECT_EQ(faults.seen().flipped, 1U);
  EXPECT_EQ(std::memcmp(memory.data(), content.data(), content.size()), 0);
  EXPECT_EQ(store.bytes_read(), 512_KiB + 64_KiB);  // the chunk that was read twice
}

TEST_P(faulty_store, a_bit_that_stays_wrong_is_corruption_with_all_the_figures) {
  io_faults faults(2);
  page_store store(options(faults, 1));
  page_mover mover(store);
  guarded_buffer memory(64_KiB);
  const page_id page = store.allocate(64_KiB, "h.3.mlp.w");
  mover.write(page, memory.data());
  faults.flip_bit();
  try {
    mover.read(page, memory.data());
    ADD_FAILURE() << "wrong bytes were accepted";
  } catch (const corruption_error& found) {
    EXPECT_THAT(found.what(), ::testing::AllOf(HasSubstr("'h.3.mlp.w'"), HasSubstr(directories_[0]->path().string()),
                                               HasSubstr("offset 0"), HasSubstr("65536 bytes")));
  }
  faults.clear();
  mover.read(page, memory.data());  // the page itself is all right
}

TEST_P(faulty_store, small_chunks_are_checked_too) {
  io_faults faults(3);
  page_store_options o = options(faults, 1);
  o.chunk = 4_KiB;
  page_store store(std::move(o));
  page_mover mover(store);
  guarded_buffer memory(4_KiB);
  const page_id page = store.allocate(4_KiB, "small");
  mover.write(page, memory.data());
  faults.flip_bit();
  EXPECT_THROW(mover.read(page, memory.data()), corruption_error);
}

TEST_P(faulty_store, padding_is_not_part_of_the_checksum) {
  io_faults faults;
  page_store store(options(faults, 1));
  page_mover mover(store);
  guarded_buffer memory(4096);
  std::memset(memory.data(), 1, 4096);
  const page_id page = store.allocate(10, "ten bytes");
  mover.write(page, memory.data());
  std::memset(memory.data(), 9, 4096);
  mover.read(page, memory.data());
  EXPECT_EQ(memory.data()[9], std::byte{1});
}

TEST_P(faulty_store, without_checksums_wrong_bits_pass) {
  io_faults faults(4);
  page_store_options o = options(faults, 1);
  o.checksums = false;
  page_store store(std::move(o));
  page_mover mover(store);
  guarded_buffer memory(64_KiB);
  std::memset(memory.data(), 0, 64_KiB);
  const page_id page = store.allocate(64_KiB, "p");
  mover.write(page, memory.data());
  faults.flip_bit();
  mover.read(page, memory.data());
  EXPECT_EQ(std::count(memory.data(), memory.data() + 64_KiB, std::byte{0}), static_cast<std::ptrdiff_t>(64_KiB - 1));
}

TEST_P(faulty_store, an_error_that_stays_is_reported_with_all_the_figures) {
  for (const io::operation_kind kind : {io::operation_kind::write, io::operation_kind::read}) {
    io_faults faults;
    page_store store(options(faults, 1));
    page_mover mover(store);
    guarded_buffer memory(128_KiB);
    const page_id page = store.allocate(128_KiB, "blk.7");
    mover.write(page, memory.data());
    faults.fail(EIO, fault_trigger{2}, {kind, -1});
    mover.start(kind, page, memory.data());
    try {
      mover.wait();
      ADD_FAILURE();
    } catch (const io_error& found) {
      EXPECT_EQ(found.error_number(), EIO);
      EXPECT_THAT(found.what(),
                  ::testing::AllOf(HasSubstr("'blk.7'"), HasSubstr(directories_.back()->path().string()),
                                   HasSubstr("wanted 65536 bytes, got 0"), HasSubstr("EIO"), HasSubstr("offset")));
    }
  }
}

TEST_P(faulty_store, a_chunk_whose_write_failed_cannot_be_read_until_it_is_written) {
  io_faults faults;
  page_store store(options(faults, 1));
  page_mover mover(store);
  guarded_buffer memory(64_KiB);
  const page_id page = store.allocate(64_KiB, "p");
  EXPECT_THROW(mover.read(page, memory.data()), usage_error);  // never written
  faults.fail(ENOSPC);
  EXPECT_THROW(mover.write(page, memory.data()), io_error);
  faults.clear();
  EXPECT_THROW(mover.read(page, memory.data()), usage_error);
  mover.write(page, memory.data());
  mover.read(page, memory.data());
}

TEST_P(faulty_store, storms_of_passing_faults_change_no_byte) {
  io_faults faults(5);
  faults.delay(0ms, 5ms)
      .shorten(fault_trigger::chance(0.3))
      .underreport(fault_trigger::chance(0.2))
      .fail(EAGAIN, fault_trigger::chance(0.1))
      .fail(EINTR, fault_trigger::chance(0.1))
      .fail(EIO, fault_trigger::nth(30))  // once: counted faults could meet one transfer, and its repetition, again
      .flip_bit(fault_trigger::nth(25));
  page_store store(options(faults, 3));
  page_mover mover(store);
  constexpr std::size_t count = 12;
  std::vector<page_id> pages;
  std::vector<std::vector<std::byte>> contents;
  std::vector<std::unique_ptr<guarded_buffer>> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const byte_count bytes = 100'000 + i * 33'333;
    pages.push_back(store.allocate(bytes, "p"));
    contents.push_back(random_bytes(bytes, i));
    buffers.push_back(std::make_unique<guarded_buffer>(store.padded_bytes(bytes)));
    std::memcpy(buffers.back()->data(), contents.back().data(), bytes);
    mover.start(io::operation_kind::write, pages[i], buffers[i]->data());
  }
  mover.wait();
  for (std::size_t i = 0; i < count; ++i) {
    std::memset(buffers[i]->data(), 0, buffers[i]->size());
    mover.start(io::operation_kind::read, pages[i], buffers[i]->data());
  }
  mover.wait();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(std::memcmp(buffers[i]->data(), contents[i].data(), contents[i].size()), 0) << i;
    EXPECT_TRUE(buffers[i]->canaries_intact());
  }
  EXPECT_EQ(faults.seen().flipped, 1U);
}

TEST_P(faulty_store, an_impossible_transfer_fails_on_another_thread) {
  io_faults faults;
  page_store store(options(faults, 1));
  guarded_buffer memory(4096);
  struct seen {
    std::thread::id thread;
    std::exception_ptr failure;
    std::atomic<bool> done{false};
  } result;
  page_transfer transfer;
  transfer.page = {5, 5};
  transfer.memory = memory.data();
  transfer.owner = &result;
  transfer.complete = [](page_transfer& self, std::exception_ptr failure) noexcept {
    auto& r = *static_cast<seen*>(self.owner);
    r.thread = std::this_thread::get_id();
    r.failure = std::move(failure);
    r.done = true;
    r.done.notify_all();
  };
  store.submit(transfer);
  result.done.wait(false);
  EXPECT_TRUE(result.thread != std::this_thread::get_id());
  EXPECT_THROW(std::rethrow_exception(result.failure), usage_error);
}

TEST_P(faulty_store, a_page_in_flight_cannot_be_freed) {
  io_faults faults;
  page_store store(options(faults, 1));
  page_mover mover(store);
  guarded_buffer memory(64_KiB);
  const page_id page = store.allocate(64_KiB, "p");
  // The completion runs while its transfer is still counted by the caller, but no longer by the store.
  faults.delay(300ms, 300ms);
  mover.start(io::operation_kind::write, page, memory.data());
  const time_point before = std::chrono::steady_clock::now();
  bool refused = false;
  try {
    store.free(page);
  } catch (const usage_error&) {
    refused = true;
  }
  if (std::chrono::steady_clock::now() - before < 200ms) {
    EXPECT_TRUE(refused);
  }
  mover.wait();
  if (refused) {
    store.free(page);
  }
  EXPECT_EQ(store.used(), 0U);
}

TEST_P(faulty_store, the_end_waits_for_all_transfers) {
  io_faults faults(6);
  faults.delay(10ms, 50ms);
  guarded_buffer memory(32 * 64_KiB);
  std::atomic<int> completed{0};
  std::vector<page_transfer> transfers(32);
  {
    page_store store(options(faults));
    const page_id page = store.allocate(32 * 64_KiB, "p");
    for (std::uint64_t i = 0; i < transfers.size(); ++i) {
      page_transfer& t = transfers[i];
      t.kind = io::operation_kind::write;
      t.page = page;
      t.chunk = i;
      t.memory = memory.data() + i * 64_KiB;
      t.owner = &completed;
      t.complete = [](page_transfer& self, std::exception_ptr failure) noexcept {
        EXPECT_EQ(failure, nullptr);
        static_cast<std::atomic<int>*>(self.owner)->fetch_add(1);
      };
      store.submit(t);
    }
  }
  EXPECT_EQ(completed, 32);
}

INSTANTIATE_TEST_SUITE_P(kinds, faulty_store, ::testing::Values(io::backend_kind::automatic, io::backend_kind::threads),
                         [](const ::testing::TestParamInfo<io::backend_kind>& tested) {
                           return tested.param == io::backend_kind::automatic ? "automatic" : "threads";
                         });

}  // namespace
}  // namespace forebay
