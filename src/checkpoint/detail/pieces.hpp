#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include <forebay/base/bytes.hpp>

namespace forebay::detail {

/// The most memory that an export, an import or a digest takes for contents.
inline constexpr byte_count piece_bytes = 1_MiB;

/// One buffer, used for one piece after another.
class piece_buffer {
 public:
  [[nodiscard]] std::span<std::byte> first(byte_count bytes) {
    return {memory_.get(), static_cast<std::size_t>(bytes)};
  }

 private:
  std::unique_ptr<std::byte[]> memory_{new std::byte[piece_bytes]};
};

/// Calls `visit(offset, length)` for consecutive pieces of at most `piece_bytes` that cover [0, bytes).
template <typename Visit>
void for_each_piece(byte_count bytes, Visit&& visit) {
  for (byte_count offset = 0; offset < bytes; offset += piece_bytes) {
    visit(offset, std::min(piece_bytes, bytes - offset));
  }
}

}  // namespace forebay::detail
