#include <forebay/checkpoint/safetensors.hpp>

#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <forebay/base/error.hpp>

#include "checkpoint/detail/pieces.hpp"

namespace forebay {
namespace {

using entries_by_name = std::unordered_map<std::string, const safetensors_entry*>;

const safetensors_entry& matching_entry(const std::filesystem::path& path, const entries_by_name& entries,
                                        const tensor_spec& spec) {
  const auto found = entries.find(spec.name);
  if (found == entries.end()) {
    throw error(fmt::format("'{}' holds no tensor '{}'", path.string(), spec.name));
  }
  const safetensors_entry& entry = *found->second;
  if (entry.type != spec.type || entry.shape != spec.shape) {
    throw error(fmt::format("tensor '{}' is {} [{}] in '{}', but {} [{}] in the engine", spec.name,
                            to_string(entry.type), fmt::join(entry.shape, ","), path.string(), to_string(spec.type),
                            fmt::join(spec.shape, ",")));
  }
  return entry;
}

}  // namespace

void import_safetensors(const std::filesystem::path& path, engine& into, std::span<const tensor_id> tensors) {
  const safetensors_file file(path);
  entries_by_name by_name;
  for (const safetensors_entry& entry : file.entries()) {
    by_name.emplace(entry.name, &entry);
  }
  std::vector<const safetensors_entry*> entries;
  for (const tensor_id tensor : tensors) {
    entries.push_back(&matching_entry(path, by_name, into.spec(tensor)));
  }
  detail::piece_buffer buffer;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    detail::for_each_piece(entries[i]->bytes, [&](byte_count offset, byte_count length) {
      const std::span<std::byte> piece = buffer.first(length);
      file.read(*entries[i], offset, piece);
      into.write(tensors[i], piece, offset);
    });
  }
}

}  // namespace forebay
