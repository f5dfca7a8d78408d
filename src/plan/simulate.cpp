#include <forebay/plan/simulate.hpp>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/minimum_capacity.hpp>

#include "plan/detail/simulator.hpp"

namespace forebay::plan {

std::vector<simulation> simulate_each(const trace& t, const machine& m, const simulation_options& options) {
  validate(m);
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      if (a.item >= t.item_bytes.size()) {
        throw usage_error(fmt::format("step {} accesses item {}; there are {}", s, a.item, t.item_bytes.size()));
      }
    }
  }
  const capacity_needs needs = minimum_capacity(t, 0);
  const bool runs = needs.device.bytes <= m.device_capacity && needs.host.bytes <= m.host_capacity;
  if (t.steps.empty() || options.iterations == 0 || !runs) {
    return std::vector<simulation>(options.iterations);
  }
  return detail::simulator(t, m, options).run();
}

simulation simulate(const trace& t, const machine& m, const simulation_options& options) {
  const std::vector<simulation> all = simulate_each(t, m, options);
  return all.empty() ? simulation{} : all.back();
}

}  // namespace forebay::plan
