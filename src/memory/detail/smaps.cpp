#include "memory/detail/smaps.hpp"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace forebay::detail {

smaps_summary smaps_of(std::uintptr_t begin, std::uintptr_t end) {
  smaps_summary sum;
  bool inside = false;
  bool told = false;
  std::ifstream in("/proc/self/smaps");
  std::string line;
  while (std::getline(in, line)) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      inside = from >= begin && to <= end;
      sum.regions += inside ? 1 : 0;
      continue;
    }
    if (!inside) {
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::string_view key = std::string_view(line).substr(0, colon == std::string::npos ? 0 : colon);
    unsigned long long value = 0;
    if (key.empty() || std::sscanf(line.c_str() + colon + 1, "%llu", &value) != 1) {
      continue;
    }
    if (key == "AnonHugePages" || key == "Private_Hugetlb" || key == "Shared_Hugetlb") {
      sum.huge_bytes += value * 1024;
    } else if (key == "Rss") {
      sum.resident_bytes += value * 1024;
    } else if (key == "THPeligible") {
      told = true;
      sum.thp_eligible = sum.thp_eligible || value != 0;
    }
  }
  sum.thp_eligible = sum.thp_eligible || (sum.regions > 0 && !told);
  return sum;
}

}  // namespace forebay::detail
