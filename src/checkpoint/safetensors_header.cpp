#include "checkpoint/detail/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

#include "checkpoint/detail/safetensors_format.hpp"

namespace forebay::detail {
namespace {

using nlohmann::json;

struct parser {
  const std::filesystem::path& path;

  [[noreturn]] void corrupt(const std::string& what) const {
    throw corruption_error(fmt::format("'{}' is not a valid safetensors file: {}", path.string(), what));
  }

  /// The header as JSON; a name that comes twice is refused instead of one of them being dropped silently.
  [[nodiscard]] json parse(std::string_view text) const {
    std::vector<std::set<std::string>> keys;
    const auto check = [&](int, json::parse_event_t event, json& parsed) {
      if (event == json::parse_event_t::object_start) {
        keys.emplace_back();
      } else if (event == json::parse_event_t::object_end) {
        keys.pop_back();
      } else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
        corrupt(fmt::format("'{}' comes twice in the header", parsed.get<std::string>()));
      }
      return true;
    };
    try {
      return json::parse(text, check);
    } catch (const json::exception& e) {
      corrupt(fmt::format("the header is not JSON: {}", e.what()));
    }
  }

  [[nodiscard]] dtype type_of(const std::string& name, const json& info) const {
    const auto found = info.find("dtype");
    if (found == info.end() || !found->is_string()) {
      corrupt(fmt::format("tensor '{}' has no dtype", name));
    }
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64, dtype::i64, dtype::i32, dtype::u8}) {
      if (to_string(type) == found->get_ref<const std::string&>()) {
        return type;
      }
    }
    throw unsupported_error(fmt::format("'{}': tensor '{}' has dtype {}, which is not supported", path.string(), name,
                                        found->get_ref<const std::string&>()));
  }

  [[nodiscard]] std::vector<std::uint64_t> numbers(const std::string& name, const json& info, const char* key) const {
    const auto found = info.find(key);
    if (found == info.end() || !found->is_array()) {
      corrupt(fmt::format("tensor '{}' has no {}", name, key));
    }
    std::vector<std::uint64_t> values;
    for (const json& value : *found) {
      if (!value.is_number_unsigned()) {
        corrupt(fmt::format("tensor '{}' has a {} that is not made of whole numbers", name, key));
      }
      values.push_back(value.get<std::uint64_t>());
    }
    return values;
  }

  [[nodiscard]] safetensors_entry entry(const std::string& name, const json& info) const {
    if (!info.is_object()) {
      corrupt(fmt::format("tensor '{}' is not described by an object", name));
    }
    tensor_source described{name, type_of(name, info), numbers(name, info, "shape"), {}};
    const std::vector<std::uint64_t> range = numbers(name, info, "data_offsets");
    if (range.size() != 2 || range[0] > range[1]) {
      corrupt(fmt::format("tensor '{}' has no valid data_offsets", name));
    }
    byte_count expected = 0;
    try {
      expected = described.bytes();
    } catch (const usage_error& e) {
      corrupt(e.what());
    }
    if (expected != range[1] - range[0]) {
      corrupt(fmt::format("tensor '{}' has {} bytes by its dtype and shape, but {} by its data_offsets", name, expected,
                          range[1] - range[0]));
    }
    return {name, described.type, std::move(described.shape), range[0], expected};
  }

  [[nodiscard]] safetensors_metadata metadata(const json& object) const {
    if (!object.is_object()) {
      corrupt("__metadata__ is not an object");
    }
    safetensors_metadata result;
    for (const auto& [key, value] : object.items()) {
      if (!value.is_string()) {
        corrupt(fmt::format("__metadata__ '{}' is not text", key));
      }
      result.emplace(key, value.get<std::string>());
    }
    return result;
  }

  /// Sorts by place and checks that the contents follow each other without gaps and overlaps and fill the file.
  void check_layout(std::vector<safetensors_entry>& entries, byte_count contents) const {
    std::sort(entries.begin(), entries.end(), [](const safetensors_entry& a, const safetensors_entry& b) {
      return std::pair(a.offset, a.offset + a.bytes) < std::pair(b.offset, b.offset + b.bytes);
    });
    byte_count end = 0;
    for (const safetensors_entry& entry : entries) {
      if (entry.offset != end) {
        corrupt(fmt::format("tensor '{}' begins at byte {} of the contents, expected {}: there is {}", entry.name,
                            entry.offset, end, entry.offset < end ? "an overlap" : "a gap"));
      }
      end = entry.offset + entry.bytes;
    }
    if (end != contents) {
      corrupt(fmt::format("the tensors take {} bytes, but the file holds {}", end, contents));
    }
  }
};

}  // namespace

byte_count safetensors_header_bytes(const std::filesystem::path& path, std::span<const std::byte, 8> prefix,
                                    byte_count file_bytes) {
  byte_count length = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) {
    length = length << 8U | static_cast<byte_count>(prefix[i]);
  }
  const byte_count most = std::min(safetensors_largest_header, file_bytes - prefix.size());
  if (length > most) {
    parser{path}.corrupt(fmt::format("the header claims {} bytes; at most {} are possible", length, most));
  }
  return length;
}

safetensors_header parse_safetensors_header(const std::filesystem::path& path, std::string_view text,
                                            byte_count contents_offset, byte_count file_bytes) {
  const parser p{path};
  if (text.empty() || text.front() != '{') {
    p.corrupt("the header does not begin with '{'");
  }
  const json root = p.parse(text);
  safetensors_header header;
  for (const auto& [name, info] : root.items()) {
    if (name == safetensors_metadata_key) {
      header.metadata = p.metadata(info);
    } else {
      header.entries.push_back(p.entry(name, info));
    }
  }
  p.check_layout(header.entries, file_bytes - contents_offset);
  for (safetensors_entry& entry : header.entries) {
    entry.offset += contents_offset;
  }
  return header;
}

}  // namespace forebay::detail
