#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forebay/io/backend.hpp>

namespace forebay::io::detail {

/// What the kernel has been given, by tags that are used once: a completion that comes twice, late, or for something
/// never submitted finds no operation, and cannot be taken for another's. Not thread-safe.
class flight_table {
 public:
  explicit flight_table(std::size_t capacity) : flights_(capacity) {
    free_.reserve(capacity);
    for (std::size_t i = capacity; i > 0; --i) {
      free_.push_back(static_cast<std::uint32_t>(i - 1));
    }
  }

  [[nodiscard]] bool full() const noexcept { return free_.empty(); }
  [[nodiscard]] bool empty() const noexcept { return free_.size() == flights_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return flights_.size(); }

  /// A tag for the run that starts with `first`; never 0. Not when full.
  [[nodiscard]] std::uint64_t depart(operation& first) noexcept {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    flight& f = flights_[slot];
    f.first = &first;
    f.generation += f.generation == ~std::uint32_t{0} ? 2 : 1;  // never 0
    return (std::uint64_t{f.generation} << 32U) | slot;
  }

  /// The slot of a tag in flight.
  [[nodiscard]] static std::size_t slot_of(std::uint64_t tag) noexcept { return static_cast<std::uint32_t>(tag); }

  /// The run of this tag, once; null for a tag that is not in flight.
  [[nodiscard]] operation* arrive(std::uint64_t tag) noexcept {
    const std::size_t slot = slot_of(tag);
    if (slot >= flights_.size()) {
      return nullptr;
    }
    flight& f = flights_[slot];
    if (f.first == nullptr || f.generation != tag >> 32U) {
      return nullptr;
    }
    operation* first = f.first;
    f.first = nullptr;
    free_.push_back(static_cast<std::uint32_t>(slot));  // within what was reserved
    return first;
  }

 private:
  struct flight {
    operation* first = nullptr;
    std::uint32_t generation = 0;
  };
  std::vector<flight> flights_;
  std::vector<std::uint32_t> free_;
};

}  // namespace forebay::io::detail
