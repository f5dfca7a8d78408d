#pragma once

#include <cstddef>
#include <cstdint>

#include <forebay/base/bytes.hpp>

namespace forebay::detail {

/// What the kernel shows in /proc/self/smaps about the mappings inside [begin, end), summed.
struct smaps_summary {
  std::size_t regions = 0;        ///< 0 when smaps can't be read
  byte_count huge_bytes = 0;      ///< resident on huge pages, transparent or hugetlb
  byte_count resident_bytes = 0;  ///< Rss, hugetlb excluded
  bool thp_eligible = false;      ///< any of them; true also where the kernel does not say
};

[[nodiscard]] smaps_summary smaps_of(std::uintptr_t begin, std::uintptr_t end);

}  // namespace forebay::detail
