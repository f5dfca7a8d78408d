#include "plan/detail/cut_choice.hpp"

#include <algorithm>

namespace forebay::plan::detail {
namespace {

void sort_and_unite(std::vector<std::int64_t>& cuts) {
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
}

/// Bytes whose contents are needed at each boundary or made by the step that is running there.
std::vector<double> live_bytes(const timeline& time, const alike_items& items, const item_demands& demands) {
  const std::int64_t n = time.sub_slots;
  std::vector<double> change(static_cast<std::size_t>(n) + 1, 0.0);
  const auto add = [&](std::int64_t first, std::int64_t last, double bytes) {
    if (first > last) {
      return;
    }
    change[static_cast<std::size_t>(std::max<std::int64_t>(first, 0))] += bytes;
    change[static_cast<std::size_t>(last + 1)] -= bytes;
  };
  for (std::size_t g = 0; g < demands.needed.size(); ++g) {
    for (const slot_range& r : demands.needed[g]) {
      add(r.first, r.last, items.bytes[g]);
      if (r.first < 0) {
        add(std::max<std::int64_t>(r.first + n, r.last + 1), n - 1, items.bytes[g]);
      }
    }
  }
  for (std::int64_t k = 1; k < n; ++k) {
    change[static_cast<std::size_t>(k)] += change[static_cast<std::size_t>(k - 1)];
  }
  for (std::int64_t k = 0; k < n; ++k) {
    change[static_cast<std::size_t>(k)] += static_cast<double>(time.working_set[static_cast<std::size_t>(k / 2)]);
  }
  return change;
}

}  // namespace

cut_choice::cut_choice(const trace& t, const timeline& time, const alike_items& items, const item_demands& demands,
                       std::size_t most)
    : trace_(t), time_(time), most_(most), live_(live_bytes(time, items, demands)) {}

std::int64_t cut_choice::first_distance() const {
  return std::max<std::int64_t>(1, 2 * time_.sub_slots / static_cast<std::int64_t>(most_));
}

std::vector<std::int64_t> cut_choice::first() const {
  const std::int64_t n = time_.sub_slots;
  std::vector<std::int64_t> cuts;
  if (n <= static_cast<std::int64_t>(most_)) {
    for (std::int64_t k = 0; k < n; ++k) {
      cuts.push_back(k);
    }
    return cuts;
  }
  const std::string* phase = &trace_.steps[time_.clock_steps.back()].phase;
  for (std::int64_t g = 0; 2 * g < n && cuts.size() + 2 <= most_ / 2; ++g) {
    const std::string* next = &trace_.steps[time_.clock_steps[static_cast<std::size_t>(g)]].phase;
    if (*next != *phase) {
      cuts.push_back(2 * g);
      cuts.push_back((2 * g - 1 + n) % n);
    }
    phase = next;
  }
  const std::int64_t stretches = std::max<std::int64_t>(1, static_cast<std::int64_t>(most_ - cuts.size()));
  for (std::int64_t i = 0; i < stretches; ++i) {
    const auto begin = live_.begin() + i * n / stretches;
    cuts.push_back(std::max_element(begin, live_.begin() + (i + 1) * n / stretches) - live_.begin());
  }
  sort_and_unite(cuts);
  return cuts;
}

std::int64_t cut_choice::either_side(std::size_t cuts) const {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(most_ / std::max<std::size_t>(cuts, 1)) / 2);
}

std::vector<std::int64_t> cut_choice::near(const std::vector<std::int64_t>& cuts, std::int64_t distance) const {
  const std::int64_t n = time_.sub_slots;
  const std::int64_t reach = either_side(cuts.size());
  std::vector<std::int64_t> all;
  for (const std::int64_t cut : cuts) {
    for (std::int64_t i = -reach; i <= reach; ++i) {
      all.push_back(((cut + i * distance) % n + n) % n);
    }
  }
  sort_and_unite(all);
  return all;
}

}  // namespace forebay::plan::detail
