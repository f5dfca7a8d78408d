#include <forebay/checkpoint/safetensors.hpp>

#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

#include "checkpoint/detail/output_file.hpp"
#include "checkpoint/detail/pieces.hpp"
#include "checkpoint/detail/safetensors_format.hpp"

namespace forebay {
namespace {

using detail::safetensors_alignment;
using detail::safetensors_largest_header;
using detail::safetensors_metadata_key;

/// A JSON string literal, quotes included. \throws usage_error when it is not UTF-8
std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw usage_error(fmt::format("'{}' is not UTF-8 and can't be a name in a safetensors file", text));
  }
}

std::string metadata_text(const safetensors_metadata& metadata) {
  std::string text = fmt::format("\"{}\":{{", safetensors_metadata_key);
  std::string_view separator;
  for (const auto& [key, value] : metadata) {
    text += fmt::format("{}{}:{}", separator, quoted(key), quoted(value));
    separator = ",";
  }
  return text + "}";
}

/// The JSON header, padded so that the contents begin at a multiple of 8.
std::string header_text(std::span<const tensor_source> tensors, const safetensors_metadata& metadata) {
  std::set<std::string_view> names;
  std::string text = "{";
  std::string_view separator;
  if (!metadata.empty()) {
    text += metadata_text(metadata);
    separator = ",";
  }
  byte_count offset = 0;
  for (const tensor_source& tensor : tensors) {
    if (tensor.name == safetensors_metadata_key || !names.insert(tensor.name).second) {
      throw usage_error(fmt::format("two tensors can't be called '{}' in a safetensors file{}", tensor.name,
                                    tensor.name == safetensors_metadata_key ? ", whose own name that is" : ""));
    }
    byte_count end = 0;
    if (__builtin_add_overflow(offset, tensor.bytes(), &end)) {
      throw usage_error(fmt::format("with tensor '{}' the file has more than 2^64 bytes", tensor.name));
    }
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", separator,
                        quoted(tensor.name), to_string(tensor.type), fmt::join(tensor.shape, ","), offset, end);
    separator = ",";
    offset = end;
  }
  text += "}";
  text.resize(align_up(text.size(), safetensors_alignment), ' ');
  if (text.size() > safetensors_largest_header) {
    throw usage_error(fmt::format("the header of {} tensors takes {} bytes; the format's readers refuse more than {}",
                                  tensors.size(), text.size(), safetensors_largest_header));
  }
  return text;
}

std::array<std::byte, 8> little_endian(std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(value & 0xffU);
    value >>= 8U;
  }
  return bytes;
}

}  // namespace

void export_safetensors(const std::filesystem::path& path, std::span<const tensor_source> tensors,
                        const safetensors_metadata& metadata) {
  const std::string header = header_text(tensors, metadata);
  detail::output_file file(path);
  file.write(little_endian(header.size()));
  file.write(std::as_bytes(std::span(header)));
  detail::piece_buffer buffer;
  for (const tensor_source& tensor : tensors) {
    detail::for_each_piece(tensor.bytes(), [&](byte_count offset, byte_count length) {
      const std::span<std::byte> piece = buffer.first(length);
      tensor.read(offset, piece);
      file.write(piece);
    });
  }
  file.commit();
}

void export_safetensors(const std::filesystem::path& path, engine& from, std::span<const tensor_id> tensors,
                        const safetensors_metadata& metadata) {
  export_safetensors(path, engine_sources(from, tensors), metadata);
}

}  // namespace forebay
