#pragma once

#include <cstddef>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay {

/// The host chunks that storage <-> device traffic passes through. Memory belongs to the host tier. Not thread-safe.
class staging_pool {
 public:
  /// Adds one chunk of memory.
  void add(std::byte* chunk) {
    free_.push_back(chunk);
    ++size_;
  }
  /// A chunk, or null when all are in use.
  [[nodiscard]] std::byte* take() {
    if (free_.empty()) {
      return nullptr;
    }
    std::byte* chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  void give_back(std::byte* chunk) { free_.push_back(chunk); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t available() const noexcept { return free_.size(); }

 private:
  std::vector<std::byte*> free_;
  std::size_t size_ = 0;
};

}  // namespace forebay
