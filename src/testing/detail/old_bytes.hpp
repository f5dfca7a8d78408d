#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include <forebay/io/backend.hpp>

namespace forebay::testing::detail {

/// What the target of a transfer held before it: the file's bytes for a write, the memory's for a read. Keeps them so
/// that they can be put back when the transfer has ended, as if it had never reached them.
class old_bytes {
 public:
  old_bytes() = default;
  /// Takes a copy. What lies beyond the end of a file counts as zeros.
  explicit old_bytes(const io::interceptor::transfer& t);

  /// Puts back what the transfer overwrote, from `keep` to `moved` bytes behind its start.
  void put_back(const io::interceptor::transfer& t, byte_count keep, byte_count moved) const noexcept;

 private:
  struct release {
    void operator()(std::byte* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::byte, release> bytes_;
};

/// The largest unit of at most 4 KiB that divides the transfer: what a drive writes wholly or not at all.
[[nodiscard]] byte_count sector_of(const io::interceptor::transfer& t) noexcept;

}  // namespace forebay::testing::detail
