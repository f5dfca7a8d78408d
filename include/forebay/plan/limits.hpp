#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <forebay/plan/bound.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// What of a machine can be made better: a rate, or a capacity.
enum class improvement : std::uint8_t {
  compute,  ///< the device's steps
  cpu,      ///< the host's steps
  h2d,
  d2h,
  storage_read,
  storage_write,
  device_capacity,
  host_capacity
};
[[nodiscard]] std::string_view to_string(improvement i);

/// The machine and its steps' durations with one thing so many times as quick, or as large.
struct improved {
  plan::machine machine;
  plan::trace trace;
};
/// \throws usage_error when the factor is below 1 or not finite.
[[nodiscard]] improved improve(const trace& t, const machine& m, improvement what, double factor);

/// What one improvement alone would do for the bound.
struct limit {
  improvement what = improvement::compute;
  double seconds_if_twice = 0.0;  ///< the bound with it twice as quick, or as large
  /// The least factor, of those tried, from which the bound falls by a fiftieth; 0: not even the greatest does it, as
  /// something else binds.
  double matters_from = 0.0;
};

/// What limits an iteration that a bound says `bound_seconds` of, what helps most with a factor of two first. A bound
/// is found for up to seven factors (1.05 to 8) of each improvement that the trace and the machine have any use of.
/// Deterministic.
[[nodiscard]] std::vector<limit> find_limits(const trace& t, const machine& m, double bound_seconds,
                                             const bound_search_options& options = {});

}  // namespace forebay::plan
