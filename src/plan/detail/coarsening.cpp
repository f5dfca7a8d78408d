#include "plan/detail/coarsening.hpp"

#include <map>
#include <utility>

namespace forebay::plan::detail {
namespace {

/// Who accesses an item, and how.
using access_pattern = std::vector<std::pair<std::uint32_t, uses>>;

std::vector<access_pattern> access_patterns(const trace& t) {
  std::vector<access_pattern> patterns(t.item_bytes.size());
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      patterns[a.item].emplace_back(s, a.how);
    }
  }
  return patterns;
}

}  // namespace

coarse_trace coarsen(const trace& t) {
  coarse_trace result;
  result.joined_of.reserve(t.item_bytes.size());
  std::map<access_pattern, item_index> known;
  std::vector<access_pattern> patterns = access_patterns(t);
  for (item_index i = 0; i < patterns.size(); ++i) {
    const auto fresh = static_cast<item_index>(result.joined.item_bytes.size());
    const item_index joined = known.try_emplace(std::move(patterns[i]), fresh).first->second;
    if (joined == fresh) {
      result.joined.item_bytes.push_back(0);
    }
    result.joined.item_bytes[joined] += t.item_bytes[i];
    result.joined_of.push_back(joined);
  }
  std::vector<std::size_t> listed(result.joined.item_bytes.size(), 0);  // how many steps there were at its last access
  for (const trace_step& s : t.steps) {
    trace_step& joined = result.joined.steps.emplace_back();
    joined = {s.where, s.seconds, s.workspace, s.phase, {}};
    for (const item_access& a : s.accesses) {
      const item_index item = result.joined_of[a.item];
      if (listed[item] != result.joined.steps.size()) {
        listed[item] = result.joined.steps.size();
        joined.accesses.push_back({item, a.how});
      }
    }
  }
  return result;
}

}  // namespace forebay::plan::detail
