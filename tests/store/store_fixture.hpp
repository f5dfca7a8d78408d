#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/store/page_store.hpp>

#include "../io/io_fixture.hpp"

namespace forebay::store_test {

using io_test::guarded_buffer;
using io_test::random_bytes;
using io_test::scratch_directory;

/// Moves whole pages, all chunks at once, and collects the failures.
class page_mover {
 public:
  explicit page_mover(page_store& store) : store_(store) {}

  /// Starts the transfer of every chunk; chunk i lies at `memory + i * chunk_bytes`.
  void start(io::operation_kind kind, page_id page, std::byte* memory) {
    const std::uint64_t count = store_.chunk_count(page);
    for (std::uint64_t i = 0; i < count; ++i) {
      start_chunk(kind, page, i, memory + i * store_.chunk_bytes());
    }
  }

  void start_chunk(io::operation_kind kind, page_id page, std::uint64_t chunk, std::byte* memory) {
    auto transfer = std::make_unique<page_transfer>();
    transfer->kind = kind;
    transfer->page = page;
    transfer->chunk = chunk;
    transfer->memory = memory;
    transfer->owner = this;
    transfer->complete = [](page_transfer& self, std::exception_ptr failure) noexcept {
      static_cast<page_mover*>(self.owner)->completed(std::move(failure));
    };
    page_transfer& raw = *transfer;
    {
      const std::scoped_lock lock(mutex_);
      transfers_.push_back(std::move(transfer));
      ++pending_;
    }
    store_.submit(raw);
  }

  /// Waits for all; rethrows the first failure.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_ == 0; });
    transfers_.clear();
    if (failure_ != nullptr) {
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
  }

  void write(page_id page, std::byte* memory) {
    start(io::operation_kind::write, page, memory);
    wait();
  }
  void read(page_id page, std::byte* memory) {
    start(io::operation_kind::read, page, memory);
    wait();
  }

 private:
  void completed(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (failure != nullptr && failure_ == nullptr) {
      failure_ = std::move(failure);
    }
    --pending_;
    changed_.notify_all();
  }

  page_store& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<page_transfer>> transfers_;
  std::uint64_t pending_ = 0;
  std::exception_ptr failure_;
};

}  // namespace forebay::store_test
