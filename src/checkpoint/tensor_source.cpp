#include <forebay/checkpoint/tensor_source.hpp>

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay {

byte_count tensor_source::bytes() const {
  byte_count total = size_of(type);
  bool fits = true;
  bool empty = false;
  for (const std::uint64_t extent : shape) {
    empty = empty || extent == 0;
    fits = !__builtin_mul_overflow(total, extent, &total) && fits;
  }
  if (!fits && !empty) {
    throw usage_error(fmt::format("tensor '{}' has more than 2^64 bytes", name));
  }
  return empty ? 0 : total;
}

tensor_source memory_source(std::string name, dtype type, std::vector<std::uint64_t> shape,
                            std::span<const std::byte> contents) {
  tensor_source source{std::move(name), type, std::move(shape),
                       [contents](byte_count offset, std::span<std::byte> out) {
                         if (!out.empty()) {
                           std::memcpy(out.data(), contents.subspan(offset, out.size()).data(), out.size());
                         }
                       }};
  if (source.bytes() != contents.size()) {
    throw usage_error(fmt::format("tensor '{}' has {} bytes by its dtype and shape, but {} were given", source.name,
                                  source.bytes(), contents.size()));
  }
  return source;
}

}  // namespace forebay
