#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <forebay/plan/phase_bound.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// Several iterations of a trace laid out one after the other, with points in time ("instants") whose sequence is the
/// same in every schedule: the starts of device steps, and the joins (all steps before have ended, none after has
/// started). A device step starts at an instant; of a host step only instants before its start and after its end are
/// known, from the conflicts and from host steps running in order.
///
/// Steps are counted through all iterations, and so are instants: step s of iteration c is c * steps + s.
struct instants {
  static constexpr std::int32_t unknown_past = -1;
  static constexpr std::int32_t unknown_future = std::numeric_limits<std::int32_t>::max();

  std::int32_t steps = 0;      ///< of one iteration
  std::int32_t per_cycle = 0;  ///< instants of one iteration
  std::int32_t cycles = 0;

  std::vector<std::int32_t> own;      ///< by step: the instant at which it starts, or -1
  std::vector<std::int32_t> join;     ///< by step: the join before it, or -1
  std::vector<std::int32_t> after;    ///< by step: the last instant known not to be after its start
  std::vector<std::int32_t> before;   ///< by step: the first instant known not to be before its end
  std::vector<std::int32_t> step_at;  ///< by instant: the step that starts there, or -1 for a join

  std::vector<std::uint32_t> cut_steps;  ///< first steps of the parts of an iteration: phases, and further cuts
  std::vector<std::int32_t> cuts;        ///< the instant of each, within one iteration, ascending, distinct

  [[nodiscard]] const trace_step& step(const trace& t, std::int32_t s) const {
    return t.steps[static_cast<std::size_t>(s % steps)];
  }
};

/// The instants that hold for time. Empty (`per_cycle` 0) when there is neither a device step nor a join.
[[nodiscard]] instants concurrent_instants(const trace& t, const bound_options& options, std::int32_t cycles);

/// For a single caller: every step is an instant, at which it is given its memory. Holds for bytes over whole
/// iterations, not for time: a device step runs some time after.
[[nodiscard]] instants grant_instants(const trace& t, std::int32_t cycles);

}  // namespace forebay::plan::detail
