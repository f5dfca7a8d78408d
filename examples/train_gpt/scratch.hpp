#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <stdexcept>

namespace train_gpt {

/// Every array that a step takes from its workspace starts on this boundary.
inline constexpr std::size_t scratch_alignment = 64;

/// Hands out a step's workspace piece by piece. A step describes what it takes in one place; a `measuring` scratch runs
/// through the same description to learn how many bytes the step must declare.
class scratch {
 public:
  explicit scratch(std::span<std::byte> memory) : memory_(memory) {}
  /// Gives empty arrays and only counts.
  [[nodiscard]] static scratch measuring() {
    scratch s{{}};
    s.measuring_ = true;
    return s;
  }

  template <typename T>
  [[nodiscard]] std::span<T> take(std::size_t elements) {
    const std::size_t begin = used_;
    used_ += (elements * sizeof(T) + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
    if (measuring_) {
      return {};
    }
    if (used_ > memory_.size()) {
      throw std::logic_error("a step takes more scratch than the workspace it declared");
    }
    return {reinterpret_cast<T*>(memory_.data() + begin), elements};
  }

  /// Bytes taken so far.
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
  bool measuring_ = false;
};

}  // namespace train_gpt
