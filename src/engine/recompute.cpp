// Activations that are made again: which ones, by the order that is run; when, by whoever needs them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/impl.hpp"

namespace forebay {
namespace detail {

/// One thread's turn to run a recomputation; others wait for its end.
class recompute_claim {
 public:
  /// Waits. Afterwards it may no longer be needed. \throws usage_error when this thread runs it already, further out.
  recompute_claim(recompute_runs& runs, std::uint32_t recomputation, const recompute_claim* outer)
      : runs_(runs), recomputation_(recomputation), outer_(outer) {
    for (const recompute_claim* c = outer; c != nullptr; c = c->outer_) {
      if (c->recomputation_ == recomputation) {
        throw usage_error(fmt::format("recomputation {} needs what only itself makes again", recomputation));
      }
    }
    std::unique_lock lock(runs_.mutex);
    runs_.ended.wait(lock, [&] { return !runs_.under_way[recomputation]; });
    runs_.under_way[recomputation] = true;
  }
  ~recompute_claim() {
    const std::scoped_lock lock(runs_.mutex);
    runs_.under_way[recomputation_] = false;
    runs_.ended.notify_all();
  }
  recompute_claim(const recompute_claim&) = delete;
  recompute_claim& operator=(const recompute_claim&) = delete;

 private:
  recompute_runs& runs_;
  std::uint32_t recomputation_;
  const recompute_claim* outer_;
};

}  // namespace detail

// The order that is run

detail::recomputed_order engine::impl::with_recomputations(const order& steps, const std::vector<recomputation>& made,
                                                           const std::vector<bool>& chosen) const {
  return detail::recompute(steps, made, chosen, specs.size(),
                           [this](std::uint32_t t) { return fmt::format("tensor '{}'", specs[t].name); });
}

void engine::impl::check_recomputations(const order& steps, const std::vector<recomputation>& made) const {
  check_tensors(detail::steps_of(made));
  for (std::size_t r = 0; r < made.size(); ++r) {
    if (!made[r].before.valid() || made[r].before.index >= steps.steps().size()) {
      throw usage_error(fmt::format("recomputation {} stands before a step that is not of the order", r));
    }
    for (const recompute_step& s : made[r].steps) {
      if (!s.run) {
        throw usage_error(fmt::format("step '{}' of recomputation {} has nothing to run", s.name, r));
      }
      if (s.like.valid() && s.like.index >= steps.steps().size()) {
        throw usage_error(
            fmt::format("step '{}' of recomputation {} is like a step that is not of the order", s.name, r));
      }
      for (const access& a : s.accesses) {
        const tensor_spec& spec = specs[a.tensor.index];
        if (has(a.how, uses::create) && spec.role != role::activation) {
          throw usage_error(fmt::format("step '{}' of recomputation {} creates tensor '{}', which is no activation",
                                        s.name, r, spec.name));
        }
      }
    }
  }
}

// Which of them are worth it

void engine::impl::start_choosing() {
  const std::size_t n = again.size();
  known_seconds.assign(current.steps().size(), -1.0);
  again_seconds.clear();
  for (const recomputation& r : again) {
    again_seconds.emplace_back(r.steps.size(), -1.0);
  }
  given_up_to.assign(specs.size(), detail::recomputed_order::none);
  runs.under_way.assign(n, false);
  advisor.reset(options.recompute == recompute_policy::automatic ? n : 0);
}

/// Takes over what has been measured of the order as it is run.
void engine::impl::note_step_seconds() {
  const std::vector<double> seconds = sched->step_seconds();
  for (std::size_t p = 0; p < seconds.size(); ++p) {
    const auto& [candidate, step] = running.sources[p];
    const bool original = candidate == plan::recomputing_trace::source::none;
    (original ? known_seconds[step] : again_seconds[candidate][step]) = seconds[p];
  }
}

/// As measured, or as declared; without either as long as the step that it is like. Negative: nobody knows.
double engine::impl::seconds_again(std::uint32_t recomputation, std::uint32_t step) const {
  if (again_seconds[recomputation][step] >= 0.0) {
    return again_seconds[recomputation][step];
  }
  const recompute_step& s = again[recomputation].steps[step];
  if (s.options.seconds > 0.0) {
    return s.options.seconds;
  }
  return s.like.valid() ? known_seconds[s.like.index] : -1.0;
}

detail::recompute_question engine::impl::recompute_question(const plan::machine& rates) {
  detail::recompute_question q;
  if (std::any_of(known_seconds.begin(), known_seconds.end(), [](double s) { return s < 0.0; })) {
    return q;
  }
  const detail::layout plain = lay_out(current);
  q.base = plain.trace;
  double whole = 0.0;
  for (std::size_t i = 0; i < known_seconds.size(); ++i) {
    q.base.steps[i].seconds = known_seconds[i];
    whole += known_seconds[i];
  }
  const detail::layout made = lay_out(detail::steps_of(again));
  std::size_t next = 0;
  for (std::uint32_t r = 0; r < again.size(); ++r) {
    plan::recompute_candidate c{again[r].before.index, {}};
    for (std::uint32_t i = 0; i < again[r].steps.size(); ++i) {
      const double seconds = seconds_again(r, i);
      c.steps.push_back(made.trace.steps[next++]);
      c.steps.back().seconds = seconds < 0.0 ? 2.0 * whole + 1.0 : seconds;  // never worth it while nobody knows
    }
    q.candidates.push_back(std::move(c));
  }
  set_workspaces_aside(q, rates);
  q.execution.single_caller = true;
  q.execution.iterations_join = true;
  q.effort = options.planning_effort;
  q.planned = options.planning != planning_policy::off;
  return q;
}

/// The room that is left for blocks beside staging and the largest workspaces, which the steps then don't ask for.
void engine::impl::set_workspaces_aside(detail::recompute_question& q, const plan::machine& rates) const {
  std::array<byte_count, 2> largest{};
  const auto take = [&](plan::trace_step& s) {
    byte_count& most = largest[s.where == place::device ? 0 : 1];
    most = std::max(most, align_up(std::exchange(s.workspace, 0), home_padding(1)));
  };
  std::for_each(q.base.steps.begin(), q.base.steps.end(), take);
  for (plan::recompute_candidate& c : q.candidates) {
    std::for_each(c.steps.begin(), c.steps.end(), take);
  }
  largest[1] += sched->staging_chunks() * options.chunk;
  q.room = rates;
  q.room.device_capacity = device_account.capacity() - std::min(largest[0], device_account.capacity());
  q.room.host_capacity = host_account.capacity() - std::min(largest[1], host_account.capacity());
}

// Called between iterations.
void engine::impl::reconsider_recomputing(const plan::machine& rates) {
  if (options.recompute != recompute_policy::automatic || again.empty()) {
    return;
  }
  note_step_seconds();
  const auto ask = [&] { return recompute_question(rates); };
  if (const auto next = advisor.advise(ask, options.planning == planning_policy::always)) {
    try {
      run_with(*next);
    } catch (const capacity_error&) {  // the host tier's staging takes what a recomputation would need
      advisor.refuse();
    }
  }
}

/// The same order with other recomputations; what has been measured stays known.
void engine::impl::run_with(const std::vector<bool>& chosen) {
  const std::scoped_lock setup(setup_mutex);
  detail::recomputed_order r = with_recomputations(current, again, chosen);
  const detail::layout l = lay_out(r.steps);
  check_capacity(l, r.steps);
  take_over(std::move(r), l);
  std::vector<double> seconds;
  for (const auto& [candidate, step] : running.sources) {
    const bool original = candidate == plan::recomputing_trace::source::none;
    seconds.push_back(original ? known_seconds[step] : seconds_again(candidate, step));
  }
  sched->restore_step_seconds(seconds);
}

// When they are run

bool engine::impl::is_missing(std::uint32_t tensor) {
  if (given_up_to[tensor] == detail::recomputed_order::none) {
    return false;
  }
  const std::scoped_lock lock(sched->mutex());
  return !sched->tensor(tensor).initialised;
}

/// Whether anything is missing that the recomputation makes.
bool engine::impl::is_needed(std::uint32_t recomputation) {
  const std::scoped_lock setup(setup_mutex);
  for (std::uint32_t t = 0; t < given_up_to.size(); ++t) {
    if (given_up_to[t] == recomputation && is_missing(t)) {
      return true;
    }
  }
  return false;
}

/// The recomputations that have to be run before the step, in order.
std::vector<std::uint32_t> engine::impl::needed_for(const detail::step_plan& step) {
  const std::scoped_lock setup(setup_mutex);
  std::vector<std::uint32_t> needed;
  if (step.position) {
    for (const std::uint32_t r : running.standing_before[*step.position]) {
      if (is_needed(r)) {
        needed.push_back(r);
      }
    }
  }
  for (const access& a : step.tensors) {
    if (!needs_contents(a.how) || a.tensor.index >= given_up_to.size() || !is_missing(a.tensor.index)) {
      continue;
    }
    const std::uint32_t r = given_up_to[a.tensor.index];
    if (std::find(needed.begin(), needed.end(), r) == needed.end()) {
      needed.push_back(r);
    }
  }
  return needed;
}

/// After a grant: what the step gives up, and what it has made anew.
void engine::impl::note_contents(const detail::step_plan& step) {
  const std::scoped_lock setup(setup_mutex);
  for (const access& a : step.tensors) {
    if (has(a.how, uses::create) && a.tensor.index < given_up_to.size()) {
      given_up_to[a.tensor.index] = detail::recomputed_order::none;
    }
  }
  if (step.position) {
    for (const auto& g : running.given_up[*step.position]) {
      given_up_to[g.tensor] = g.recomputation;
    }
  }
}

lease engine::grant_complete(const detail::step_plan& step, stream* on) {
  if (impl_->again.empty()) {
    return grant(step, on);
  }
  make_again(step, on, nullptr);
  lease granted = grant(step, on);
  impl_->note_contents(step);
  return granted;
}

void engine::make_again(const detail::step_plan& step, stream* on, const detail::recompute_claim* outer) {
  for (const std::uint32_t r : impl_->needed_for(step)) {
    const detail::recompute_claim claim(impl_->runs, r, outer);
    if (!impl_->is_needed(r)) {
      continue;  // another thread has made it meanwhile, or a recomputation before this one
    }
    for (std::uint32_t i = 0; i < impl_->again[r].steps.size(); ++i) {
      run_again(r, i, on, claim);
    }
  }
}

void engine::run_again(std::uint32_t recomputation, std::uint32_t step, stream* on,
                       const detail::recompute_claim& claim) {
  const detail::step_plan& plan = impl_->sched->step(impl_->running.first_step[recomputation] + step);
  stream* own = nullptr;
  if (plan.where == place::device) {
    own = on == nullptr ? impl_->compute.get() : on;
  }
  make_again(plan, own, &claim);
  lease granted = grant(plan, own);
  try {
    impl_->again[recomputation].steps[step].run(granted, own);
  } catch (...) {
    // What it should have made is not there: it ends, and is as missing as before.
    granted.release();
    std::vector<access> made;
    for (const access& a : plan.tensors) {
      if (has(a.how, uses::create)) {
        made.push_back(frees(a.tensor));
      }
    }
    if (!made.empty()) {
      const step_options options{plan.where, 0, 0.0, {}};
      grant(impl_->plan_on_the_spot(plan.name + " (failed)", made, options), own).release();
    }
    throw;
  }
  granted.release();
  impl_->note_contents(plan);
}

}  // namespace forebay
