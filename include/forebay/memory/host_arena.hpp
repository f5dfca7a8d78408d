#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay {

class topology;

enum class page_kind : std::uint8_t { base_pages, transparent_huge_pages, huge_pages };

struct host_arena_options {
  bool huge_pages = true;             ///< try hugetlb, then THP, then base pages
  const topology* bind_to = nullptr;  ///< NUMA binding, when given
};

/// One anonymous reservation of page-aligned host memory (2 MiB-aligned from 2 MiB on). Pages are taken from the
/// machine as they are first touched, but for hugetlb ones, which are taken at once; never more than `bytes`, rounded
/// up to a page. A transparent huge page makes 2 MiB resident at the first touch. Not inherited by children of fork.
/// Move-only; unmaps in the destructor.
class host_arena {
 public:
  /// \throws capacity_error naming the size and errno when the address space cannot be had.
  explicit host_arena(byte_count bytes, const host_arena_options& options = {});
  ~host_arena();
  host_arena(host_arena&& other) noexcept;
  host_arena& operator=(host_arena&& other) noexcept;

  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }
  [[nodiscard]] byte_count size() const noexcept { return memory_.size(); }
  [[nodiscard]] page_kind pages() const noexcept { return pages_; }
  /// Bytes of the arena that are on huge pages now, read from the kernel (smaps); 0 when it cannot be told.
  [[nodiscard]] byte_count huge_bytes_resident() const;
  /// For a report: "192 MiB on transparent huge pages, of which the kernel shows 190 MiB". What is not touched yet is
  /// on no page, and a machine without free huge pages gives small ones in their place.
  [[nodiscard]] std::string describe() const;
  /// Services that were refused, one sentence each ("huge pages: ...").
  [[nodiscard]] const std::vector<std::string>& degradations() const noexcept { return degradations_; }

 private:
  void unmap() noexcept;

  std::span<std::byte> memory_;
  std::span<std::byte> mapping_;  // what munmap needs: the whole reservation, alignment slack included
  page_kind pages_ = page_kind::base_pages;
  std::vector<std::string> degradations_;
};

}  // namespace forebay
