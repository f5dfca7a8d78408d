#include <forebay/plan/rotate.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

void apply(const trace& t, const operation& o, schedule& state) {
  if (o.what == operation::kind::drop) {
    state.at_start[o.index] = without(state.at_start[o.index], o.gone);
    return;
  }
  if (o.what == operation::kind::transfer) {
    state.at_start[o.index] = state.at_start[o.index] | target_of(o.over);
    if (o.over == link::storage_write) {
      state.stored_on[o.index] = o.path;
    }
    return;
  }
  const trace_step& step = t.steps.at(o.index);
  for (const item_access& a : step.accesses) {
    if (modifies(a.how)) {
      state.at_start[a.item] = step.where == place::device ? copies::device : copies::host;
    }
    if (has(a.how, uses::free)) {
      state.at_start[a.item] = copies::none;
    }
  }
}

bool is_step(const operation& o) { return o.what == operation::kind::step; }

}  // namespace

schedule rotated(const trace& t, const schedule& s, std::size_t first) {
  if (first >= s.operations.size()) {
    throw usage_error(
        fmt::format("a schedule of {} operations can't begin with operation {}", s.operations.size(), first));
  }
  schedule result = s;
  for (std::size_t i = 0; i < first; ++i) {
    apply(t, s.operations[i], result);
  }
  std::rotate(result.operations.begin(), result.operations.begin() + static_cast<std::ptrdiff_t>(first),
              result.operations.end());
  return result;
}

schedule from_first_step(const trace& t, const schedule& s) {
  const auto first = std::find_if(s.operations.begin(), s.operations.end(),
                                  [](const operation& o) { return is_step(o) && o.index == 0; });
  if (first == s.operations.end()) {
    return s;
  }
  // Back to the step before, if need be round the end.
  const auto before = std::find_if(std::make_reverse_iterator(first), s.operations.rend(), is_step);
  if (before != s.operations.rend()) {
    return rotated(t, s, static_cast<std::size_t>(before.base() - s.operations.begin()));
  }
  const auto last = std::find_if(s.operations.rbegin(), s.operations.rend(), is_step);
  return rotated(t, s, static_cast<std::size_t>(last.base() - s.operations.begin()) % s.operations.size());
}

bool steps_in_order(const schedule& s) {
  std::uint32_t next = 0;
  return std::all_of(s.operations.begin(), s.operations.end(),
                     [&](const operation& o) { return !is_step(o) || o.index == next++; });
}

}  // namespace forebay::plan
