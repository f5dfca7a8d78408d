#include "plan/detail/coarsening.hpp"

#include <map>
#include <utility>

namespace forebay::plan::detail {
namespace {

/// By item: who accesses it and how. Equal lists make items alike.
std::vector<std::vector<std::pair<std::uint32_t, uses>>> access_patterns(const trace& t) {
  std::vector<std::vector<std::pair<std::uint32_t, uses>>> patterns(t.item_bytes.size());
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      patterns[a.item].emplace_back(s, a.how);
    }
  }
  return patterns;
}

}  // namespace

std::optional<coarse_trace> coarsen(const trace& t, std::size_t at_most) {
  const auto patterns = access_patterns(t);
  struct group {
    item_index joined = 0;
    std::size_t count = 0;
  };
  std::map<std::vector<std::pair<std::uint32_t, uses>>, group> open;
  coarse_trace result;
  result.joined_of.resize(t.item_bytes.size());
  for (item_index i = 0; i < patterns.size(); ++i) {
    group& g = open[patterns[i]];
    if (g.count % at_most == 0) {
      g.joined = static_cast<item_index>(result.joined.item_bytes.size());
      result.joined.item_bytes.push_back(0);
    }
    ++g.count;
    result.joined.item_bytes[g.joined] += t.item_bytes[i];
    result.joined_of[i] = g.joined;
  }
  if (result.joined.item_bytes.size() == t.item_bytes.size()) {
    return std::nullopt;
  }
  std::vector<std::size_t> listed(result.joined.item_bytes.size(), 0);  // the last step that lists it, plus one
  for (const trace_step& s : t.steps) {
    trace_step joined{s.where, s.seconds, s.workspace, s.phase, {}};
    result.joined.steps.push_back(joined);
    for (const item_access& a : s.accesses) {
      std::size_t& last = listed[result.joined_of[a.item]];
      if (last != result.joined.steps.size()) {
        last = result.joined.steps.size();
        result.joined.steps.back().accesses.push_back({result.joined_of[a.item], a.how});
      }
    }
  }
  return result;
}

}  // namespace forebay::plan::detail
