#include "device/detail/copy_range.hpp"

#include <cstdint>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::detail {
namespace {

struct range {
  std::uintptr_t begin;
  byte_count bytes;
};

range of(const std::byte* p, byte_count bytes) { return {reinterpret_cast<std::uintptr_t>(p), bytes}; }

bool inside(range a, range b) {
  return a.begin >= b.begin && a.bytes <= b.bytes && a.begin - b.begin <= b.bytes - a.bytes;
}

bool overlap(range a, range b) { return a.begin < b.begin ? b.begin - a.begin < a.bytes : a.begin - b.begin < b.bytes; }

[[noreturn]] void refuse(const char* what, range r, std::span<const std::byte> arena) {
  throw usage_error(fmt::format("{}: [{:#x}, +{}), the arena is [{:#x}, +{})", what, r.begin, r.bytes,
                                reinterpret_cast<std::uintptr_t>(arena.data()), arena.size()));
}

}  // namespace

void check_copy(std::span<const std::byte> arena, const std::byte* to, const std::byte* from, byte_count bytes,
                copy_direction direction) {
  if (bytes == 0) {
    return;
  }
  const range device = of(arena.data(), arena.size());
  const range target = of(to, bytes);
  const range source = of(from, bytes);
  if (to == nullptr || from == nullptr) {
    throw usage_error(fmt::format("a copy of {} bytes {} a null pointer", bytes, to == nullptr ? "to" : "from"));
  }
  const bool to_device = direction != copy_direction::device_to_host;
  const bool from_device = direction != copy_direction::host_to_device;
  if (to_device ? !inside(target, device) : overlap(target, device)) {
    refuse(to_device ? "the target of a copy to the device is not inside its arena"
                     : "the target of a copy to the host is in the device's arena",
           target, arena);
  }
  if (from_device ? !inside(source, device) : overlap(source, device)) {
    refuse(from_device ? "the source of a copy from the device is not inside its arena"
                       : "the source of a copy from the host is in the device's arena",
           source, arena);
  }
  if (overlap(target, source)) {
    throw usage_error(fmt::format("a copy of {} bytes overlaps itself", bytes));
  }
}

void check_inside(std::span<const std::byte> arena, const std::byte* to, byte_count bytes, const char* what) {
  if (!inside(of(to, bytes), of(arena.data(), arena.size()))) {
    refuse(what, of(to, bytes), arena);
  }
}

}  // namespace forebay::detail
