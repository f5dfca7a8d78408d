#include <forebay/memory/host_arena.hpp>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include <forebay/base/contract.hpp>
#include <forebay/memory/topology.hpp>

#include "memory/detail/smaps.hpp"

namespace forebay {
namespace {

constexpr byte_count base_page = 4_KiB;
constexpr byte_count huge_page = 2_MiB;

std::span<std::byte> map_anonymous(byte_count bytes, int extra_flags) {
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
  if (start == MAP_FAILED) {
    return {};
  }
  return {static_cast<std::byte*>(start), bytes};
}

std::uintptr_t address(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); }

byte_count count_in(const char* file) {
  std::ifstream in(std::string("/sys/kernel/mm/hugepages/hugepages-2048kB/") + file);
  byte_count n = 0;
  return in >> n ? n : 0;
}

/// Why the arena can't be on hugetlb pages; empty when it may.
std::string huge_pages_lacking(byte_count bytes) {
  const byte_count reserved = count_in("resv_hugepages");
  const byte_count idle = count_in("free_hugepages");
  const byte_count free_pages = idle - (idle < reserved ? idle : reserved);
  const byte_count wanted = bytes / huge_page + (bytes % huge_page == 0 ? 0 : 1);
  if (free_pages >= wanted) {
    return {};
  }
  return fmt::format("huge pages: {} of {} are free, {} are needed (vm.nr_hugepages)", free_pages,
                     format_bytes(huge_page), wanted);
}

/// Takes the pages at once, since nothing else can use what the pool has promised, and since only so a refusal (a
/// container's hugetlb limit) is an error code here, and not a SIGBUS at some later touch.
std::span<std::byte> map_huge(byte_count bytes, std::string& refusal) {
  refusal = huge_pages_lacking(bytes);
  if (!refusal.empty()) {
    return {};
  }
  constexpr int two_mib = 21 << MAP_HUGE_SHIFT;
  const auto mapping = map_anonymous(align_up(bytes, huge_page), MAP_HUGETLB | two_mib);
  if (mapping.empty()) {
    refusal = fmt::format("huge pages: mmap refused them: {}", describe_errno(errno));
    return {};
  }
  if (::madvise(mapping.data(), mapping.size(), MADV_POPULATE_WRITE) != 0) {
    refusal = fmt::format("huge pages: the kernel did not give what it promised: {}", describe_errno(errno));
    ::munmap(mapping.data(), mapping.size());
    return {};
  }
  return mapping;
}

/// A reservation of base pages whose start is 2 MiB-aligned where that can matter. No byte beyond `bytes` rounded to a
/// base page is kept, so that a transparent huge page never makes more resident than the arena has.
std::span<std::byte> map_base(byte_count bytes) {
  const byte_count size = align_up(bytes, base_page);
  if (size < huge_page) {
    return map_anonymous(size, MAP_NORESERVE);
  }
  if (size > ~byte_count{0} - huge_page) {
    errno = ENOMEM;
    return {};
  }
  const auto slack = map_anonymous(size + huge_page, MAP_NORESERVE);
  if (slack.empty()) {
    return {};
  }
  const byte_count head = align_up(address(slack.data()), huge_page) - address(slack.data());
  const byte_count tail = slack.size() - head - size;
  if (head > 0) {
    ::munmap(slack.data(), head);
  }
  if (tail > 0) {
    ::munmap(slack.data() + head + size, tail);
  }
  return slack.subspan(head, size);
}

/// Why no transparent huge pages will come; empty when the kernel says that they will.
std::string transparent_refusal(std::span<std::byte> mapping) {
  if (mapping.size() < huge_page) {
    return {};  // none is wanted
  }
  if (::madvise(mapping.data(), mapping.size(), MADV_HUGEPAGE) != 0) {
    return fmt::format("transparent huge pages: madvise refused: {}", describe_errno(errno));
  }
  // madvise succeeds even where they are switched off; what counts is what the kernel shows for this mapping.
  const auto shown = detail::smaps_of(address(mapping.data()), address(mapping.data()) + mapping.size());
  if (shown.regions > 0 && !shown.thp_eligible) {
    return "transparent huge pages: the kernel does not grant them (/sys/kernel/mm/transparent_hugepage/enabled)";
  }
  return {};
}

}  // namespace

host_arena::host_arena(byte_count bytes, const host_arena_options& options) {
  FOREBAY_EXPECTS(bytes > 0, "a host arena has at least one byte");
  std::string refusal;
  if (options.huge_pages && bytes >= huge_page) {
    mapping_ = map_huge(bytes, refusal);
    pages_ = page_kind::huge_pages;
  }
  if (mapping_.empty()) {
    mapping_ = bytes <= ~byte_count{0} - base_page ? map_base(bytes) : (errno = ENOMEM, std::span<std::byte>{});
    pages_ = page_kind::base_pages;
  }
  if (mapping_.empty()) {
    throw capacity_error(fmt::format("the address space for a host arena of {} ({} bytes) can't be had: {}",
                                     format_bytes(bytes), bytes, describe_errno(errno)));
  }
  memory_ = mapping_.first(bytes);
  if (options.huge_pages && pages_ == page_kind::base_pages) {
    const std::string transparent = transparent_refusal(mapping_);
    if (transparent.empty() && mapping_.size() >= huge_page) {
      pages_ = page_kind::transparent_huge_pages;
    } else if (!transparent.empty()) {
      degradations_.push_back(refusal);
      degradations_.push_back(transparent);
    }
  }
  // A child of fork must not share the pages: each write of the parent would copy one, beyond every budget, and a
  // device or ring that has the old page pinned would go on with that.
  ::madvise(mapping_.data(), mapping_.size(), MADV_DONTFORK);
  if (options.bind_to != nullptr) {
    const binding_result binding = options.bind_to->bind_memory(mapping_, options.bind_to->preferred_node());
    if (!binding.bound && options.bind_to->nodes().size() > 1) {
      degradations_.push_back("NUMA binding: " + binding.detail);
    }
  }
}

host_arena::~host_arena() { unmap(); }

host_arena::host_arena(host_arena&& other) noexcept
    : memory_(std::exchange(other.memory_, {})),
      mapping_(std::exchange(other.mapping_, {})),
      pages_(other.pages_),
      degradations_(std::move(other.degradations_)) {}

host_arena& host_arena::operator=(host_arena&& other) noexcept {
  if (this != &other) {
    unmap();
    memory_ = std::exchange(other.memory_, {});
    mapping_ = std::exchange(other.mapping_, {});
    pages_ = other.pages_;
    degradations_ = std::move(other.degradations_);
  }
  return *this;
}

byte_count host_arena::huge_bytes_resident() const {
  if (mapping_.empty()) {
    return 0;
  }
  return detail::smaps_of(address(mapping_.data()), address(mapping_.data()) + mapping_.size()).huge_bytes;
}

std::string host_arena::describe() const {
  const std::string all = format_bytes(memory_.size());
  switch (pages_) {
    case page_kind::base_pages:
      return all + " on pages of " + format_bytes(base_page);
    case page_kind::transparent_huge_pages:
      return all + " on transparent huge pages, of which the kernel shows " + format_bytes(huge_bytes_resident());
    case page_kind::huge_pages:
      break;
  }
  return all + " on huge pages, of which the kernel shows " + format_bytes(huge_bytes_resident());
}

void host_arena::unmap() noexcept {
  if (!mapping_.empty()) {
    ::munmap(mapping_.data(), mapping_.size());
  }
  memory_ = {};
  mapping_ = {};
}

}  // namespace forebay
