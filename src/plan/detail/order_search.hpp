#pragma once

#include <cstdint>

#include <forebay/plan/planner.hpp>

namespace forebay::plan::detail {

struct order_search_limits {
  std::uint32_t schedules = 0;  ///< that are timed at most
  double enough = 0.0;          ///< seconds: a period that need not be improved
};

/// Improves a plan by small random changes to its order: simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) over
/// the moves of `order_moves`, from a temperature that is lower for larger traces to zero. Deterministic. The result is
/// never worse.
[[nodiscard]] planned improve_order(const trace& t, const machine& m, const planner_options& options, planned plan,
                                    const order_search_limits& limits);

}  // namespace forebay::plan::detail
