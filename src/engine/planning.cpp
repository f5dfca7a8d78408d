// When a schedule is made, and when it is followed.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <forebay/plan/hash.hpp>

#include "engine/impl.hpp"
#include "engine/planned_timeline.hpp"

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

bool differ(const std::vector<double>& a, const std::vector<double>& b) {
  const auto sum = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); };
  return a.size() != b.size() || differs(sum(a), sum(b));
}

// Blocks beyond the last one that the order uses say nothing about it: they are other orders'.
void drop_unused_items(plan::trace& t) {
  std::size_t used = 0;
  for (const plan::trace_step& s : t.steps) {
    for (const plan::item_access& a : s.accesses) {
      used = std::max<std::size_t>(used, a.item + 1);
    }
  }
  t.item_bytes.resize(used);
}

}  // namespace

void engine::impl::forget_plan(const detail::layout& l) {
  ++planning.orders;  // what is being planned now is for another one
  planning.step_seconds.clear();
  planning.last_seconds = 0.0;
  planning.bound_seconds = 0.0;
  planning.timed = {};
  planning.trace = l.trace;
  planning.largest_workspace = {};
  for (plan::trace_step& s : planning.trace.steps) {
    byte_count& largest = planning.largest_workspace[s.where == place::device ? 0 : 1];
    largest = std::max(largest, s.workspace);
    s.workspace = 0;
  }
  drop_unused_items(planning.trace);
}

// Of an order that was planned for before, at the same capacities. The caller holds the scheduler's mutex.
void engine::impl::remember_plan() {
  if (options.planning == planning_policy::off || !options.prefetch) {
    return;
  }
  if (const detail::remembered_plan* known = planning.memory.find(key_of_plan())) {
    planning.step_seconds = known->step_seconds;
    planning.rates = known->rates;
    follow_from_now_on(known->schedule);
  }
}

detail::plan_key engine::impl::key_of_plan() const {
  const detail::planning_problem p = problem_for({}, {});
  return {plan::hash_of(p.trace), p.machine.device_capacity - p.device.before - p.device.after,
          p.machine.host_capacity - p.host.before - p.host.after};
}

detail::planning_problem engine::impl::problem_for(const std::vector<double>& step_seconds,
                                                   const plan::machine& rates) const {
  detail::planning_problem p;
  p.planner = options.planner;
  p.trace = planning.trace;
  for (std::size_t i = 0; i < step_seconds.size(); ++i) {
    p.trace.steps[i].seconds = step_seconds[i];
  }
  p.granularity = home_padding(1);
  p.device.after = align_up(planning.largest_workspace[0], p.granularity);
  p.host.before = sched->staging_chunks() * options.chunk;
  p.host.after = align_up(planning.largest_workspace[1], p.granularity);
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
  const bool first = planning.step_seconds.empty();
  const bool news = first || differ(step_seconds, planning.step_seconds) || differ(rates, planning.rates);
  const bool whatever = options.planning == planning_policy::always || options.planner != planner_kind::search;
  if (news && (first || !whatever) && !planning.planner.busy()) {
    planning.step_seconds = step_seconds;
    planning.rates = rates;
    planning.planned_order = planning.orders;
    planning.bound_seconds = 0.0;
    planning.planner.start(problem_for(step_seconds, rates));
  }
  if (planning.planner.ready() || (planning.planner.busy() && whatever)) {
    take_plan();
  }
  if (sched->current_schedule() != nullptr && (news || !planning.timed.complete || cheap_to_time())) {
    const detail::planning_problem now = problem_for(step_seconds, rates);
    planning.timed = plan::evaluate(now.trace, now.machine, sched->current_schedule()->steady, now.execution);
  }
  sched->start_following();
}

// Less than a hundredth of an iteration.
bool engine::impl::cheap_to_time() const {
  constexpr double seconds_per_operation = 2e-6;
  const auto operations = static_cast<double>(sched->current_schedule()->steady.operations.size());
  return operations * seconds_per_operation < 0.01 * planning.last_seconds;
}

void engine::impl::take_plan() {
  detail::planning_result made = planning.planner.take();
  if (planning.planned_order != planning.orders) {
    return;
  }
  planning.bound_seconds = made.bound_seconds;
  if (made.schedule == nullptr) {
    return;
  }
  ++planning.made;
  const bool whatever = options.planning == planning_policy::always || options.planner != planner_kind::search;
  if (whatever || made.schedule->predicted.period <= worth_while * seconds_as_it_is()) {
    planning.memory.keep(key_of_plan(), {made.schedule, planning.step_seconds, planning.rates});
    const std::scoped_lock lock(sched->mutex());
    follow_from_now_on(made.schedule);
  }
}

// What an iteration takes the way it is run now: as measured, or as the same model has it that a new schedule is
// predicted by. Measured times contain much that no schedule changes, so both have to agree that one is better.
double engine::impl::seconds_as_it_is() const {
  const double predicted = sched->following() ? planning.timed.period : expected.predicted_seconds;
  return predicted > 0.0 ? std::min(planning.last_seconds, predicted) : planning.last_seconds;
}

void engine::impl::follow_from_now_on(std::shared_ptr<const detail::placed_schedule> schedule) {
  const auto room = [&](byte_count workspace) { return align_up(workspace, home_padding(1)); };
  sched->set_schedule(std::move(schedule), room(planning.largest_workspace[0]), room(planning.largest_workspace[1]));
  planning.timed = {};
  ++planning.adopted;
}

void engine::impl::show_plan() const {
  if (options.timeline == nullptr || !sched->following_whole_iterations() || !planning.timed.complete) {
    return;
  }
  detail::planned_names names;
  {
    const std::scoped_lock lock(sched->mutex());
    for (std::uint32_t i = 0; i < planning.trace.item_bytes.size(); ++i) {
      names.items.push_back(sched->block(i).name);
    }
    for (std::uint32_t i = 0; i < planning.trace.steps.size(); ++i) {
      names.steps.push_back(sched->step(i).name);
    }
  }
  detail::record_planned(*options.timeline, names, planning.trace, sched->current_schedule()->steady, planning.timed,
                         began);
}

// What no schedule can beat: of the phase-wise bound, which knows how steps are run here, and the certified one, which
// knows the links better.
double engine::impl::bound_seconds() const { return std::max(expected.bound_seconds, planning.bound_seconds); }

plan_report engine::analyse() const { return impl_->analyse(); }

plan_report engine::impl::analyse() const {
  FOREBAY_EXPECTS(!iterating, "an iteration is under way: finish it first");
  plan_report r;
  r.measured_seconds = planning.last_seconds;
  r.predicted_seconds = sched->following() ? planning.timed.period : expected.predicted_seconds;
  r.schedules_made = planning.made;
  r.schedules_adopted = planning.adopted;
  const std::vector<double> durations = sched->step_seconds();
  if (durations.empty() || planning.trace.steps.empty()) {
    return r;
  }
  const detail::planning_problem p = problem_for(durations, sched->known_machine());
  const plan::machine m = detail::bounded_machine(p);
  plan::bound_search_options search;
  search.execution = p.execution;
  const plan::certified_bound bound = plan::find_bound(p.trace, m, search);
  r.bound_seconds = std::max(bound.seconds, expected.bound_seconds);
  std::vector<plan::bound_window> windows = bound.windows;
  std::stable_sort(windows.begin(), windows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (const plan::bound_window& w : windows) {
    r.binding.push_back(plan::describe(p.trace, w));
  }
  r.limits = plan::find_limits(p.trace, m, bound.seconds, search);
  return r;
}

}  // namespace forebay
