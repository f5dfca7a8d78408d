#include "device/detail/emulated_memory.hpp"

#include <cerrno>
#include <cstdint>

#include <fmt/format.h>
#include <sys/mman.h>

#include <forebay/base/error.hpp>

namespace forebay::detail {
namespace {

constexpr byte_count base_page = 4_KiB;
constexpr byte_count huge_page = 2_MiB;

void* reserve(byte_count bytes) {
  if (bytes > ~byte_count{0} - huge_page - base_page) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return ::mmap(nullptr, align_up(bytes, base_page) + huge_page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

emulated_memory::emulated_memory(byte_count bytes) {
  void* const start = reserve(bytes);
  if (start == MAP_FAILED) {
    throw capacity_error(fmt::format("the emulated device can't have {} ({} bytes) of memory: {}", format_bytes(bytes),
                                     bytes, describe_errno(errno)));
  }
  // The slack goes back at once, so that no huge page reaches beyond the device's capacity.
  const std::span<std::byte> slack(static_cast<std::byte*>(start), align_up(bytes, base_page) + huge_page);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const byte_count head = align_up(address, huge_page) - address;
  mapping_ = slack.subspan(head, align_up(bytes, base_page));
  bytes_ = mapping_.first(bytes);
  if (head > 0) {
    ::munmap(slack.data(), head);
  }
  if (head < huge_page) {
    ::munmap(mapping_.data() + mapping_.size(), huge_page - head);
  }
  // Both are wishes: without them the device is slower, or costlier beside children, but right.
  ::madvise(mapping_.data(), mapping_.size(), MADV_HUGEPAGE);
  ::madvise(mapping_.data(), mapping_.size(), MADV_DONTFORK);
}

emulated_memory::~emulated_memory() { ::munmap(mapping_.data(), mapping_.size()); }

}  // namespace forebay::detail
