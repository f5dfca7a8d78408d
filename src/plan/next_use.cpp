#include <forebay/plan/next_use.hpp>

#include <algorithm>

namespace forebay::plan {

next_use::next_use(const trace& t) : steps_(static_cast<std::uint32_t>(t.steps.size())) {
  first_.assign(t.item_bytes.size() + 1, 0);
  for (const trace_step& step : t.steps) {
    for (const item_access& access : step.accesses) {
      ++first_[access.item + 1];
    }
  }
  for (std::size_t i = 1; i < first_.size(); ++i) {
    first_[i] += first_[i - 1];
  }
  positions_.resize(first_.back());
  std::vector<std::uint32_t> fill(first_.begin(), first_.end() - 1);
  for (std::uint32_t s = 0; s < steps_; ++s) {
    for (const item_access& access : t.steps[s].accesses) {
      positions_[fill[access.item]++] = s;
    }
  }
}

std::uint32_t next_use::distance(item_index item, std::uint32_t position) const {
  if (item + 1 >= first_.size() || first_[item] == first_[item + 1]) {
    return never;
  }
  const auto begin = positions_.begin() + first_[item];
  const auto end = positions_.begin() + first_[item + 1];
  const auto found = std::lower_bound(begin, end, position);
  return found != end ? *found - position : steps_ - position + *begin;
}

std::uint32_t next_use::distance_after(item_index item, std::uint32_t position, std::uint32_t after) const {
  if (steps_ == 0) {
    return never;
  }
  const std::uint32_t start = (position + after + 1) % steps_;
  const std::uint32_t further = distance(item, start);
  return further == never ? never : further + after + 1;
}

}  // namespace forebay::plan
