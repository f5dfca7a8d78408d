#pragma once

#include <cstddef>
#include <cstdint>

#include <forebay/base/bytes.hpp>

namespace forebay::store_detail {

/// XXH3, 64 bits: by the widest vectors that this processor has, where the library chooses at run time.
[[nodiscard]] std::uint64_t checksum_of(const std::byte* memory, byte_count bytes) noexcept;

}  // namespace forebay::store_detail
