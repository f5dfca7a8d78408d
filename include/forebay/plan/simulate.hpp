#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

struct simulation_options {
  std::uint32_t iterations = 3;  ///< from a cold start; the last one is reported
  bool prefetch = true;          ///< off: on demand only
  /// An iteration starts when all steps of the previous one have ended (transfers may go on).
  bool iterations_join = true;
  /// Phases whose first step starts when all steps before it have ended.
  std::vector<std::string> joining_phases{};
};

/// What the last simulated iteration cost.
struct simulation {
  bool complete = false;       ///< false: the order can't run (a working set above a capacity); all else is zero
  double seconds = 0.0;        ///< from the end of the last step of the iteration before to the end of its own
  double stall_seconds = 0.0;  ///< in which a step had its turn but not yet its items
  std::uint64_t misses = 0;    ///< acquires that found an item neither present nor on its way
  link_volume moved;           ///< started in the iteration
};

/// Predicts an iteration under the engine's policy: whole items move, at most one transfer at a time on each link (all
/// storage paths together are one link per direction, as an item is striped over them evenly; from storage to the
/// device or back it takes one link after the other), fetches come in the order of need, evicted is what is used
/// furthest in the future. One thread acquires the steps in order: device steps queue up and run one at a time once
/// their items are there, a host step blocks the thread.
///
/// Inputs: `seconds` of the steps are their durations with all items resident; `host_capacity` is what items may take,
/// staging excluded; without storage the host holds everything. Items whose first access in the order needs contents
/// lie in the home tier at first; those that a step frees live from their creation to there.
///
/// Left out: fragmentation, chunks (a two-link transfer of one item does not overlap itself), checks and bookkeeping.
/// Deterministic. Cost: O(events x items that fit ahead): milliseconds for hundreds of accesses, half a second
/// for 6,000, seconds beyond. \throws usage_error on a machine or item index that is not
/// valid.
[[nodiscard]] simulation simulate(const trace& t, const machine& m, const simulation_options& options = {});

/// The same, iteration by iteration.
[[nodiscard]] std::vector<simulation> simulate_each(const trace& t, const machine& m,
                                                    const simulation_options& options = {});

}  // namespace forebay::plan
