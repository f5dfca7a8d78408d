#include "plan/detail/certificate_maps.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forebay::plan::detail {
namespace {

/// Calls `map` with each of the first one's arrays, the second one's, and whether it is of memory.
template <typename Map>
void for_each_array(certificate& to, const certificate& from, Map map) {
  map(to.h2d, from.h2d, false);
  map(to.d2h, from.d2h, false);
  map(to.cpu, from.cpu, false);
  for (std::size_t p = 0; p < from.storage_read.size(); ++p) {
    map(to.storage_read[p], from.storage_read[p], false);
    map(to.storage_write[p], from.storage_write[p], false);
  }
  map(to.device, from.device, true);
  map(to.host, from.host, true);
}

}  // namespace

place clock_of(const trace& t) {
  const bool device =
      std::any_of(t.steps.begin(), t.steps.end(), [](const trace_step& s) { return s.where == place::device; });
  return device ? place::device : place::host;
}

certificate widened(const certificate& c, const trace& t, const recomputing_trace& r, const machine& m) {
  const place clock = clock_of(t);
  std::vector<std::size_t> from;  // by sub-slot of the wider trace: where its prices are
  std::vector<bool> memory;
  std::size_t own = 0;  // the original's steps of the clock so far
  const std::size_t all = sub_slot_count(t);
  for (std::uint32_t s = 0; s < r.sources.size(); ++s) {
    if (r.steps.steps[s].where != clock) {
      continue;
    }
    const bool original = r.sources[s].candidate == recomputing_trace::source::none;
    const std::size_t between = (2 * own + all - 1) % all;
    from.push_back(original ? 2 * own : between);
    from.push_back(original ? 2 * own + 1 : between);
    memory.insert(memory.end(), 2, original);
    own += original ? 1 : 0;
  }
  certificate wide = no_prices(r.steps, m);
  for_each_array(wide, c, [&](std::vector<double>& to, const std::vector<double>& prices, bool of_memory) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] = of_memory && !memory[k] ? 0.0 : prices[from[k]];
    }
  });
  return wide;
}

certificate narrowed(const certificate& wide, const trace& t, const recomputing_trace& r, const machine& m) {
  const place clock = clock_of(t);
  std::vector<std::size_t> from;
  std::size_t number = 0;
  for (std::uint32_t s = 0; s < r.sources.size(); ++s) {
    if (r.steps.steps[s].where != clock) {
      continue;
    }
    if (r.sources[s].candidate == recomputing_trace::source::none) {
      from.insert(from.end(), {2 * number, 2 * number + 1});
    }
    ++number;
  }
  certificate c = no_prices(t, m);
  for_each_array(c, wide, [&](std::vector<double>& to, const std::vector<double>& prices, bool) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] = prices[from[k]];
    }
  });
  return c;
}

certificate mixture(const certificate& a, const certificate& b, double share) {
  certificate c = a;
  for_each_array(c, b, [&](std::vector<double>& to, const std::vector<double>& other, bool) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] = (1.0 - share) * to[k] + share * other[k];
    }
  });
  return c;
}

}  // namespace forebay::plan::detail
