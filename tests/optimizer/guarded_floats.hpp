#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace forebay::testing_optimizer {

/// Floats that end right before a page that can't be touched, with a canary before the first: a write past the end
/// crashes, one before the start is seen by `intact`.
class guarded_floats {
 public:
  explicit guarded_floats(std::size_t n) : count_(n) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = (n * sizeof(float) + canary_bytes + page - 1) / page;
    bytes_ = (pages + 1) * page;
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(static_cast<std::byte*>(memory) + pages * page, page, PROT_NONE) != 0) {
      throw std::bad_alloc();
    }
    memory_ = static_cast<std::byte*>(memory);
    first_ = memory_ + pages * page - n * sizeof(float);
    std::memset(first_ - canary_bytes, canary, canary_bytes);
  }
  ~guarded_floats() { munmap(memory_, bytes_); }
  guarded_floats(const guarded_floats&) = delete;
  guarded_floats& operator=(const guarded_floats&) = delete;

  [[nodiscard]] std::span<float> span() const { return {reinterpret_cast<float*>(first_), count_}; }
  [[nodiscard]] bool intact() const {
    for (std::size_t i = 1; i <= canary_bytes; ++i) {
      if (*(first_ - i) != std::byte{canary}) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::size_t canary_bytes = 256;
  static constexpr unsigned char canary = 0xa5;

  std::size_t count_;
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* first_ = nullptr;
};

}  // namespace forebay::testing_optimizer
