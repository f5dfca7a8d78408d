#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <forebay/base/error.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::io_test {

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

/// Operations with their results, and a way to wait for all of them.
class batch {
 public:
  explicit batch(io::backend& backend) : backend_(backend) {}
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;

  /// Starts an operation; its index.
  std::size_t start(io::operation_kind kind, int file, byte_count offset, std::byte* memory, byte_count bytes,
                    byte_count alignment = 1, std::uint8_t urgency = 0) {
    item* added = nullptr;
    std::size_t index = 0;
    {
      const std::scoped_lock lock(mutex_);
      added = &items_.emplace_back();
      index = items_.size() - 1;
      ++pending_;
    }
    added->owner = this;
    io::operation& op = added->op;
    op.kind = kind;
    op.file = file;
    op.offset = offset;
    op.memory = memory;
    op.bytes = bytes;
    op.alignment = alignment;
    op.urgency = urgency;
    op.context = added;
    op.complete = [](io::operation& self, io::result outcome) noexcept {
      auto& mine = *static_cast<item*>(self.context);
      mine.owner->completed(mine, outcome);
    };
    backend_.submit(op);
    return index;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_ == 0; });
  }

  [[nodiscard]] io::result of(std::size_t i) const { return items_.at(i).outcome; }
  [[nodiscard]] int completions(std::size_t i) const { return items_.at(i).completions; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] std::size_t pending() const {
    const std::scoped_lock lock(mutex_);
    return pending_;
  }

  /// Starts one operation and waits for it.
  io::result run(io::operation_kind kind, int file, byte_count offset, std::byte* memory, byte_count bytes,
                 byte_count alignment = 1) {
    const std::size_t i = start(kind, file, offset, memory, bytes, alignment);
    wait();
    return of(i);
  }

 private:
  struct item {
    io::operation op;
    io::result outcome;
    int completions = 0;
    batch* owner = nullptr;
  };

  void completed(item& mine, io::result outcome) {
    const std::scoped_lock lock(mutex_);
    mine.outcome = outcome;
    ++mine.completions;
    --pending_;
    changed_.notify_all();
  }

  io::backend& backend_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<item> items_;
  std::size_t pending_ = 0;
};

/// The suites of both backends derive from this: `GetParam()` is the backend's kind.
class both_backends : public ::testing::TestWithParam<io::backend_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == io::backend_kind::uring) {
      try {
        (void)io::make_backend({.kind = io::backend_kind::uring});
      } catch (const unsupported_error& refused) {
        GTEST_SKIP() << refused.what();
      }
    }
  }

  [[nodiscard]] io::backend_options options(io::interceptor* faults = nullptr) const {
    io::backend_options o;
    o.kind = GetParam();
    o.faults = faults;
    return o;
  }

  /// A new file in the test's own directory; closed with the fixture.
  [[nodiscard]] int open_file(const char* name, int flags = 0) {
    const int file = ::open((directory_.path() / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
    if (file < 0) {
      throw std::runtime_error(std::string("open ") + name + ": " + describe_errno(errno));
    }
    files_.push_back(file);
    return file;
  }

  void TearDown() override {
    for (const int file : files_) {
      ::close(file);
    }
  }

  scratch_directory directory_;
  std::vector<int> files_;
};

inline std::string backend_name(const ::testing::TestParamInfo<io::backend_kind>& info) {
  return info.param == io::backend_kind::uring ? "uring" : "threads";
}

}  // namespace forebay::io_test
