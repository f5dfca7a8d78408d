#include "pattern.hpp"

#include <cstring>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::store_bench {
namespace {

constexpr byte_count word = sizeof(std::uint64_t);
constexpr std::uint64_t per_word = 0x9e3779b97f4a7c15U;  // odd, so that no two words of a tensor are equal
constexpr int wrong_byte = 0xa5;

/// The finaliser of splitmix64: a bijection that spreads near inputs over all words.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

pattern::pattern(std::span<std::byte> memory, byte_count total, byte_count tensor)
    : memory_(memory), tensor_(tensor), written_(static_cast<std::size_t>(ceil_div(total, tensor)), 0) {}

std::uint64_t pattern::first_word(byte_count tensor) const {
  return mixed((tensor << 24U) + written_[static_cast<std::size_t>(tensor)]);
}

void pattern::prepare(std::span<const piece> pieces) {
  for (const piece& p : pieces) {
    if (!p.reads && p.offset % tensor_ == 0) {
      ++written_[static_cast<std::size_t>(p.offset / tensor_)];
    }
  }
  for (const piece& p : pieces) {
    std::byte* const at = memory_.data() + p.offset;
    if (p.reads) {
      std::memset(at, wrong_byte, p.bytes);
      continue;
    }
    std::uint64_t value = first_word(p.offset / tensor_) + p.offset % tensor_ / word * per_word;
    for (byte_count i = 0; i < p.bytes; i += word, value += per_word) {
      std::memcpy(at + i, &value, word);
    }
  }
}

void pattern::check(std::span<const piece> pieces) const {
  for (const piece& p : pieces) {
    const std::byte* const at = memory_.data() + p.offset;
    std::uint64_t wanted = first_word(p.offset / tensor_) + p.offset % tensor_ / word * per_word;
    for (byte_count i = 0; p.reads && i < p.bytes; i += word, wanted += per_word) {
      std::uint64_t found = 0;
      std::memcpy(&found, at + i, word);
      if (found != wanted) {
        throw corruption_error(fmt::format("tensor {} of {} bytes, offset {}: wanted {:016x}, got {:016x}",
                                           p.offset / tensor_, tensor_, p.offset % tensor_ + i, wanted, found));
      }
    }
  }
}

}  // namespace forebay::store_bench
