#pragma once

#include <string_view>

#include <forebay/base/bytes.hpp>

namespace forebay::detail {

inline constexpr std::string_view safetensors_metadata_key = "__metadata__";
inline constexpr byte_count safetensors_alignment = 8;
/// Readers of the format refuse longer headers.
inline constexpr byte_count safetensors_largest_header = 100'000'000;

}  // namespace forebay::detail
