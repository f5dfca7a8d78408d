#include "engine/background_planner.hpp"

#include <forebay/plan/bound.hpp>

namespace forebay::detail {

planning_result solve(const planning_problem& problem) {
  planning_result result;
  if (std::optional<placed_schedule> made = make_schedule(problem)) {
    result.schedule = std::make_shared<const placed_schedule>(std::move(*made));
  }
  plan::bound_search_options options;
  options.execution = problem.execution;
  result.bound_seconds = plan::find_bound(problem.trace, bounded_machine(problem), options).seconds;
  return result;
}

}  // namespace forebay::detail
