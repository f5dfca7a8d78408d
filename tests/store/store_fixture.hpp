#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <forebay/store/page_store.hpp>

namespace forebay::store_test {

/// A fresh directory that goes away with the object.
class scratch_directory {
 public:
  explicit scratch_directory(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = (parent / "forebay-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp " + pattern);
    }
    path_ = pattern;
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline constexpr std::size_t canary_bytes = 4096;
inline constexpr std::byte canary{0xA5};

/// 4 KiB aligned memory with canaries before and behind.
class guarded_buffer {
 public:
  explicit guarded_buffer(byte_count bytes) : bytes_(bytes) {
    const byte_count all = align_up(bytes, canary_bytes) + 2 * canary_bytes;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(canary_bytes, all)));
    std::memset(memory_.get(), static_cast<int>(canary), all);
  }
  [[nodiscard]] std::byte* data() { return memory_.get() + canary_bytes; }
  [[nodiscard]] byte_count size() const { return bytes_; }
  [[nodiscard]] bool canaries_intact() const {
    for (std::size_t i = 0; i < canary_bytes; ++i) {
      if (memory_.get()[i] != canary || memory_.get()[canary_bytes + bytes_ + i] != canary) {
        return false;
      }
    }
    return true;
  }

 private:
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };
  byte_count bytes_;
  std::unique_ptr<std::byte, release> memory_;
};

/// splitmix64: a different byte sequence per seed, without a period.
inline std::vector<std::byte> random_bytes(byte_count n, std::uint64_t seed) {
  std::vector<std::byte> bytes(n);
  for (byte_count i = 0; i < n; ++i) {
    std::uint64_t z = (seed * 0x9E3779B97F4A7C15U) + (i + 1) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    bytes[i] = static_cast<std::byte>(z >> 56U);
  }
  return bytes;
}

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
