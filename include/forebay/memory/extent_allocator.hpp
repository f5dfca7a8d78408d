#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <forebay/base/bytes.hpp>

namespace forebay {

/// A contiguous run of bytes inside an arena or a file.
struct extent {
  byte_count offset = 0;
  byte_count bytes = 0;

  [[nodiscard]] byte_count end() const noexcept { return offset + bytes; }
  friend bool operator==(const extent&, const extent&) = default;
};

/// Hands out offsets of an address range [0, capacity) and takes them back, coalescing neighbours, so that no hole is
/// ever lost. Best fit, lowest address among equals; O(log holes) per call. Holds no memory itself. Not thread-safe.
///
/// Every size is rounded up to `granularity` (a power of two), and every offset is a multiple of it.
class extent_allocator {
 public:
  /// Uses the largest multiple of `granularity` that is <= `capacity`.
  extent_allocator(byte_count capacity, byte_count granularity);

  /// The extent (rounded size), or nothing when no hole is large enough. `bytes` must be > 0.
  [[nodiscard]] std::optional<extent> allocate(byte_count bytes);
  /// Takes exactly this place. False (and no change) unless the whole of it is free.
  [[nodiscard]] bool allocate_at(extent place);
  /// Gives back an extent that `allocate` or `allocate_at` gave. \throws usage_error when it is not wholly allocated.
  void free(extent place);

  [[nodiscard]] byte_count capacity() const noexcept { return capacity_; }
  [[nodiscard]] byte_count granularity() const noexcept { return granularity_; }
  [[nodiscard]] byte_count free_bytes() const noexcept { return free_bytes_; }
  [[nodiscard]] byte_count largest_hole() const noexcept;
  [[nodiscard]] std::size_t hole_count() const noexcept { return holes_.size(); }
  /// offset -> bytes of every hole, in address order.
  [[nodiscard]] const std::map<byte_count, byte_count>& holes() const noexcept { return holes_; }

 private:
  using hole_iterator = std::map<byte_count, byte_count>::iterator;

  [[nodiscard]] extent rounded(extent place) const;
  [[nodiscard]] hole_iterator hole_around(byte_count offset);
  void add_hole(extent hole);
  void move_hole(hole_iterator hole, extent to) noexcept;
  void erase_hole(hole_iterator hole) noexcept;

  byte_count capacity_;
  byte_count granularity_;
  byte_count free_bytes_;
  std::map<byte_count, byte_count> holes_;                     // offset -> bytes
  std::set<std::pair<byte_count, byte_count>> holes_by_size_;  // (bytes, offset)
};

}  // namespace forebay
