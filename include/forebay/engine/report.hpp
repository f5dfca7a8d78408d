#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/memory/tier.hpp>
#include <forebay/plan/limits.hpp>
#include <forebay/store/page_store.hpp>

namespace forebay {

/// Bytes that really moved, per link.
struct link_bytes {
  byte_count h2d = 0;
  byte_count d2h = 0;
  byte_count storage_read = 0;
  byte_count storage_written = 0;
};

/// What one iteration cost.
struct iteration_report {
  std::uint64_t number = 0;
  double seconds = 0.0;        ///< from begin to the end of finish
  double stall_seconds = 0.0;  ///< in which the compute stream, or the caller of a host step, waited for data
  std::uint64_t misses = 0;    ///< acquires that found a block neither present, nor on its way, nor in the schedule
  link_bytes moved;
  link_bytes required;  ///< what order and capacities make every schedule move, in the long run; 0 while unknown
  tier_bytes peak;      ///< of the run so far
  std::uint32_t recomputations = 0;  ///< of those declared, how many the order of this iteration contained
  bool planned = false;              ///< it followed a schedule of the planner from its first step to its last
  double predicted_seconds = 0.0;    ///< by the plan, from the durations and rates known before; 0 while unknown
  /// Lower bound for durations and rates known before, and the same recomputations; 0 while unknown.
  double bound_seconds = 0.0;
};

/// How close iterations come to what no schedule can beat, and what stands in the way.
struct plan_report {
  double measured_seconds = 0.0;   ///< of the last iteration
  double predicted_seconds = 0.0;  ///< with the durations and rates as they are now; 0 while unknown
  double bound_seconds = 0.0;      ///< likewise: no schedule's long-run time per iteration is less; 0 while unknown
  /// Parts of the iteration that the bound is made of, the longest first: "h2d 4.39 s from backward to update".
  std::vector<std::string> binding;
  /// How much each thing would have to improve to matter, the one that helps most with a factor of two first.
  std::vector<plan::limit> limits;
  std::uint64_t schedules_made = 0;     ///< by the planner, so far
  std::uint64_t schedules_adopted = 0;  ///< of those and of earlier ones for the same order
};

/// What the engine runs on, and which services it had to do without.
struct engine_report {
  std::string device;
  std::string io_backend;
  std::string host_pages;                 ///< what the host tier's memory lies on, as the kernel shows it
  unsigned storage_depth = 0;             ///< transfers in flight per storage path at most; 0 without storage
  byte_count storage_transfer_bytes = 0;  ///< neighbours become one transfer up to this
  std::vector<path_rate> storage_paths;   ///< rates as measured so far, and how the paths share the pages
  double checksum_seconds = 0.0;          ///< of processor time so far, estimated from a sample
  tier_bytes capacity;
  tier_bytes used;
  tier_bytes peak;
  byte_count pinned_bytes = 0;
  std::vector<std::string> degradations;  ///< one sentence each: what was refused, why, what is done instead
};

}  // namespace forebay
