#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include <forebay/checkpoint/safetensors.hpp>

namespace forebay::detail {

struct safetensors_header {
  std::vector<safetensors_entry> entries;
  safetensors_metadata metadata;
};

/// The length that the file's first 8 bytes claim for the header. \throws corruption_error when the file of
/// `file_bytes`
/// (>= 8) can't hold it
[[nodiscard]] byte_count safetensors_header_bytes(const std::filesystem::path& path,
                                                  std::span<const std::byte, 8> prefix, byte_count file_bytes);

/// Parses and validates a header; `path` is for errors. \throws corruption_error, unsupported_error
[[nodiscard]] safetensors_header parse_safetensors_header(const std::filesystem::path& path, std::string_view text,
                                                          byte_count contents_offset, byte_count file_bytes);

}  // namespace forebay::detail
