#include <forebay/engine/detail/recompute_advisor.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <forebay/base/error.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/simulate.hpp>

namespace forebay::detail {
namespace {

constexpr double worth_while = 0.98;   // of the time as predicted without the change
constexpr double no_slower = 1.01;     // of the time as measured before the change
constexpr std::uint32_t settling = 2;  // iterations before anything is judged: the first has the old set's copies
constexpr std::uint32_t trial_iterations = 6;  // until a schedule for the new order is followed and measured
constexpr std::size_t remembered = 4;
constexpr std::uint32_t least_patience = 8;
// Of the effort for one plan: all of them together take about as much.
constexpr double exact_effort = 0.07;
constexpr double rough_effort = 0.015;

bool differs(double a, double b) {
  constexpr double tolerance = 0.1;
  return std::isfinite(a) != std::isfinite(b) || std::abs(a - b) > tolerance * std::abs(b);
}

double sum_of(const recompute_question& q) {
  double sum = 0.0;
  for (const plan::trace_step& s : q.base.steps) {
    sum += s.seconds;
  }
  for (const plan::recompute_candidate& c : q.candidates) {
    for (const plan::trace_step& s : c.steps) {
      sum += s.seconds;
    }
  }
  return sum;
}

double planned(const plan::trace& t, const recompute_question& q, double effort) {
  plan::planner_options o;
  o.effort = effort;
  o.execution = q.execution;
  try {
    return plan::plan_iteration(t, q.room, o).predicted.period;
  } catch (const capacity_error&) {
    return std::numeric_limits<double>::infinity();
  }
}

/// Seconds per iteration under the engine's look-ahead.
double simulated(const plan::trace& t, const plan::machine& m) {
  const plan::simulation s = plan::simulate(t, m);
  return s.complete ? s.seconds : std::numeric_limits<double>::infinity();
}

}  // namespace

recompute_advisor::~recompute_advisor() { stop(); }

void recompute_advisor::stop() {
  if (pending_.valid()) {
    stopped_ = true;
    pending_.wait();
    pending_ = {};
    stopped_ = false;
  }
}

void recompute_advisor::reset(std::size_t recomputations) {
  stop();
  chosen_.assign(recomputations, false);
  measured_.clear();
  iterations_ = 0;
  trial_.reset();
  rejected_.clear();
  patience_ = least_patience;
  since_asked_ = 0;
  asked_seconds_ = -1.0;
}

void recompute_advisor::note(double seconds) {
  ++since_asked_;
  if (++iterations_ == 1) {
    return;
  }
  measured_.push_back(seconds);
  if (measured_.size() > remembered) {
    measured_.pop_front();
  }
}

double recompute_advisor::least_measured() const { return *std::min_element(measured_.begin(), measured_.end()); }

recompute_advisor::answer recompute_advisor::find(const recompute_question& q, const std::vector<bool>& now,
                                                  const std::atomic<bool>& stopped) {
  constexpr std::uint32_t most = 40;
  const auto judge = [&](double effort) {
    return [&q, &stopped, effort](const plan::trace& t) {
      if (stopped) {
        return std::numeric_limits<double>::infinity();
      }
      return q.planned ? planned(t, q, effort) : simulated(t, q.room);
    };
  };
  const plan::iteration_seconds exact = judge(exact_effort * q.effort);
  const double least = plan::seconds_with_room(q.base, q.room, q.execution) / worth_while;
  answer a;
  a.choice = plan::choose_recompute(q.base, q.candidates, judge(rough_effort * q.effort), exact, most, least);
  a.seconds_as_it_is = exact(plan::recompute(q.base, q.candidates, now).steps);
  return a;
}

bool recompute_advisor::is_news(const recompute_question& q) const {
  const auto path_differs = [](const plan::storage_link& x, const plan::storage_link& y) {
    return differs(x.read_rate, y.read_rate) || differs(x.write_rate, y.write_rate);
  };
  const plan::machine& m = asked_rates_;
  return asked_seconds_ < 0.0 || differs(sum_of(q), asked_seconds_) || differs(q.room.h2d_rate, m.h2d_rate) ||
         differs(q.room.d2h_rate, m.d2h_rate) ||
         !std::equal(q.room.storage.begin(), q.room.storage.end(), m.storage.begin(), m.storage.end(),
                     std::not_fn(path_differs));
}

std::optional<std::vector<bool>> recompute_advisor::advise(const std::function<recompute_question()>& ask, bool wait) {
  if (chosen_.empty() || iterations_ < settling) {
    return std::nullopt;
  }
  if (trial_) {
    return end_trial();
  }
  if (!pending_.valid() && (asked_seconds_ < 0.0 || since_asked_ >= patience_)) {
    recompute_question q = ask();
    since_asked_ = 0;
    if (!q.base.steps.empty() && is_news(q)) {
      asked_seconds_ = sum_of(q);
      asked_rates_ = q.room;
      pending_ =
          std::async(std::launch::async, [this, q = std::move(q), now = chosen_] { return find(q, now, stopped_); });
    }
  }
  const bool ready =
      pending_.valid() && (wait || pending_.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  return ready ? take_answer() : std::nullopt;
}

std::optional<std::vector<bool>> recompute_advisor::take_answer() {
  answer a;
  try {
    a = pending_.get();
  } catch (const usage_error&) {  // blocks from an earlier order that hold other tensors too: nothing to choose
    return std::nullopt;
  }
  const bool tried = std::find(rejected_.begin(), rejected_.end(), a.choice.chosen) != rejected_.end();
  if (tried || a.choice.chosen == chosen_ || a.choice.seconds > worth_while * a.seconds_as_it_is) {
    return std::nullopt;
  }
  trial_ = trial{std::exchange(chosen_, std::move(a.choice.chosen)), least_measured()};
  measured_.clear();
  iterations_ = 0;
  return chosen_;
}

std::optional<std::vector<bool>> recompute_advisor::end_trial() {
  if (iterations_ < trial_iterations) {
    return std::nullopt;
  }
  const bool slower = least_measured() > no_slower * trial_->seconds;
  if (slower) {
    refuse();
    return chosen_;
  }
  trial_.reset();
  return std::nullopt;
}

void recompute_advisor::refuse() {
  rejected_.push_back(std::exchange(chosen_, std::move(trial_->before)));
  trial_.reset();
  patience_ *= 2;
  measured_.clear();
  iterations_ = 0;
}

}  // namespace forebay::detail
