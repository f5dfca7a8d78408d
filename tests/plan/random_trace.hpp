#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/minimum_capacity.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::test {

/// What random traces look like.
struct trace_shape {
  std::uint32_t steps = 8;
  std::uint32_t persistent = 5;
  std::uint32_t transient = 3;  ///< created and freed within the iteration
  byte_count largest = 9;
  bool host_steps = true;
  bool workspaces = false;
};

inline std::uint32_t below(std::mt19937& random, std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }

/// A valid order: transient items live from one step to a later one and may be used in between; persistent ones are
/// read and written anywhere, each by one step at least.
inline trace random_trace(std::mt19937& random, const trace_shape& shape) {
  trace t;
  t.steps.resize(shape.steps);
  for (std::uint32_t s = 0; s < shape.steps; ++s) {
    trace_step& step = t.steps[s];
    step.where = shape.host_steps && below(random, 4) == 0 ? place::host : place::device;
    step.seconds = static_cast<double>(below(random, 5));
    step.workspace = shape.workspaces && below(random, 2) == 0 ? 1 + below(random, 3) : 0;
    step.phase = s < shape.steps / 3 ? "forward" : (s < 2 * shape.steps / 3 ? "backward" : "update");
  }
  for (std::uint32_t i = 0; i < shape.persistent + shape.transient; ++i) {
    t.item_bytes.push_back(1 + random() % shape.largest);
  }
  for (std::uint32_t i = 0; i < shape.persistent; ++i) {
    const std::uint32_t sure = below(random, shape.steps);
    for (std::uint32_t s = 0; s < shape.steps; ++s) {
      if (s == sure || below(random, 4) == 0) {
        t.steps[s].accesses.push_back({i, below(random, 3) == 0 ? uses::read | uses::write : uses::read});
      }
    }
  }
  for (std::uint32_t k = 0; k < shape.transient; ++k) {
    const std::uint32_t i = shape.persistent + k;
    const std::uint32_t made = below(random, shape.steps - 1);
    const std::uint32_t freed = made + 1 + below(random, shape.steps - 1 - made);
    t.steps[made].accesses.push_back({i, uses::create});
    for (std::uint32_t s = made + 1; s < freed; ++s) {
      if (below(random, 3) == 0) {
        t.steps[s].accesses.push_back({i, below(random, 4) == 0 ? uses::write : uses::read});
      }
    }
    t.steps[freed].accesses.push_back({i, uses::read | uses::free});
  }
  return t;
}

/// Capacities from just enough to nearly everything, rates of 1 to 4 bytes per second, one to three paths.
inline machine random_machine(std::mt19937& random, const trace& t, bool stored) {
  const capacity_needs needs = minimum_capacity(t, 0);
  machine m;
  m.device_capacity = needs.device.bytes + random() % (needs.home / 2 + 1);
  m.host_capacity = stored ? needs.host.bytes + random() % (needs.home / 2 + 1) : needs.home + needs.host.bytes;
  m.h2d_rate = 1 + static_cast<double>(below(random, 4));
  m.d2h_rate = 1 + static_cast<double>(below(random, 4));
  for (std::uint32_t p = 0; stored && p <= below(random, 3); ++p) {
    m.storage.push_back({1 + static_cast<double>(below(random, 4)), 1 + static_cast<double>(below(random, 4))});
  }
  m.half_duplex_storage = below(random, 2) == 0;
  return m;
}

}  // namespace forebay::plan::test
