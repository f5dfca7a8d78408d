#pragma once

#include <cstddef>
#include <span>

#include <forebay/base/bytes.hpp>
#include <forebay/device/device.hpp>

namespace forebay::detail {

/// What every device demands of a copy. \throws usage_error when a pointer is null, the ranges overlap, the device's
/// side is not wholly inside the arena, or the host's side touches it. Zero bytes are fine anywhere.
void check_copy(std::span<const std::byte> arena, const std::byte* to, const std::byte* from, byte_count bytes,
                copy_direction direction);

/// \throws usage_error unless [to, to + bytes) is inside the arena.
void check_inside(std::span<const std::byte> arena, const std::byte* to, byte_count bytes, const char* what);

}  // namespace forebay::detail
