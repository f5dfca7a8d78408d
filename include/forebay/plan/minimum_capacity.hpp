#pragma once

#include <cstdint>
#include <optional>

#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// What one tier needs at least, and the step that needs it.
struct tier_need {
  byte_count bytes = 0;
  std::optional<std::uint32_t> step;  ///< the first step with the largest working set; none when no step decides
};

struct capacity_needs {
  tier_need device;
  tier_need host;       ///< `reserved_host` included
  byte_count home = 0;  ///< of the lowest tier: room for every item at once
};

/// The bytes that a step's lease takes in its own tier: its items and its workspace, padded.
[[nodiscard]] byte_count working_set(const trace& t, std::uint32_t step);

/// Smallest capacities with which every order of the trace's steps runs: each tier holds its largest working set at
/// once. Any step may come at any time, so frees can't be counted on and the home tier has room for all items together.
/// `reserved_host`: bytes that the host tier always keeps aside (one transfer chunk).
[[nodiscard]] capacity_needs minimum_capacity(const trace& t, byte_count reserved_host);

}  // namespace forebay::plan
