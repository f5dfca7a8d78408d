// When a schedule is made, and when it is followed.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/impl.hpp"

namespace forebay {
namespace {

constexpr double worth_while = 0.98;  // of the time that iterations take now

bool differs(double a, double b) {
  constexpr double tolerance = 0.1;
  return std::isfinite(a) != std::isfinite(b) || std::abs(a - b) > tolerance * std::abs(b);
}

bool differ(const plan::machine& a, const plan::machine& b) {
  const auto path_differs = [](const plan::storage_link& x, const plan::storage_link& y) {
    return differs(x.read_rate, y.read_rate) || differs(x.write_rate, y.write_rate);
  };
  return differs(a.h2d_rate, b.h2d_rate) || differs(a.d2h_rate, b.d2h_rate) ||
         !std::equal(a.storage.begin(), a.storage.end(), b.storage.begin(), b.storage.end(), std::not_fn(path_differs));
}

}  // namespace

void engine::impl::forget_plan(const detail::layout& l) {
  ++orders;  // what is being planned now is for another one
  planned_seconds.clear();
  last_seconds = 0.0;
  schedule_seconds = 0.0;
  to_plan = l.trace;
  largest_workspace = {};
  for (plan::trace_step& s : to_plan.steps) {
    byte_count& largest = largest_workspace[s.where == place::device ? 0 : 1];
    largest = std::max(largest, s.workspace);
    s.workspace = 0;
  }
}

detail::planning_problem engine::impl::problem_for(const std::vector<double>& step_seconds,
                                                   const plan::machine& rates) const {
  detail::planning_problem p;
  p.trace = to_plan;
  for (std::size_t i = 0; i < step_seconds.size(); ++i) {
    p.trace.steps[i].seconds = step_seconds[i];
  }
  p.granularity = home_padding(1);
  p.device.after = align_up(largest_workspace[0], p.granularity);
  p.host.before = sched->staging_chunks() * options.chunk;
  p.host.after = align_up(largest_workspace[1], p.granularity);
  p.machine = rates;
  p.machine.device_capacity = device_account.capacity();
  p.machine.host_capacity = host_account.capacity();
  p.effort = options.planning_effort;
  p.execution.single_caller = true;
  p.execution.iterations_join = true;
  return p;
}

// Called between iterations. A schedule is made from what is known now, and one that has been made is taken over when
// it promises to be faster than what is done now.
void engine::impl::keep_planning(const std::vector<double>& step_seconds, const plan::machine& rates) {
  if (options.planning == planning_policy::off || !options.prefetch || step_seconds.empty()) {
    return;
  }
  const auto sum = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); };
  const bool news = planned_seconds.size() != step_seconds.size() || differs(sum(step_seconds), sum(planned_seconds)) ||
                    differ(rates, planned_rates);
  const bool enough = options.planning == planning_policy::always && !planned_seconds.empty();
  if (news && !enough && !planner.busy()) {
    planned_seconds = step_seconds;
    planned_rates = rates;
    planned_order = orders;
    planner.start(problem_for(step_seconds, rates));
  }
  if (planner.ready() || (planner.busy() && options.planning == planning_policy::always)) {
    std::optional<detail::placed_schedule> made = planner.take();
    if (made && planned_order == orders) {
      consider(std::move(*made));
    }
  }
  if (sched->current_schedule() != nullptr && (news || schedule_seconds == 0.0)) {
    schedule_seconds = predict(*sched->current_schedule(), problem_for(step_seconds, rates));
  }
  sched->start_following();
}

double engine::impl::predict(const detail::placed_schedule& schedule, const detail::planning_problem& problem) {
  return plan::evaluate(problem.trace, problem.machine, schedule.steady, problem.execution).period;
}

// What an iteration takes the way it is run now: as measured, or as the same model has it that a new schedule is
// predicted by. Measured times contain much that no schedule changes, so both have to agree that one is better.
double engine::impl::seconds_as_it_is() const {
  const double predicted = sched->following() ? schedule_seconds : expected.predicted_seconds;
  return predicted > 0.0 ? std::min(last_seconds, predicted) : last_seconds;
}

void engine::impl::consider(detail::placed_schedule made) {
  const bool better = made.predicted.period <= worth_while * seconds_as_it_is();
  if (!better && options.planning != planning_policy::always) {
    return;
  }
  const std::scoped_lock lock(sched->mutex());
  sched->set_schedule(std::make_unique<const detail::placed_schedule>(std::move(made)),
                      align_up(largest_workspace[0], home_padding(1)), align_up(largest_workspace[1], home_padding(1)));
  schedule_seconds = 0.0;
}

}  // namespace forebay
