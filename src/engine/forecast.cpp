#include "engine/forecast.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include <forebay/plan/simulate.hpp>

namespace forebay::detail {
namespace {

// Above so many accesses the figures would cost more than they tell: the simulation grows with their square.
// The bound grows with the accesses and with the square of the phases.
constexpr std::size_t largest_simulated = 5'000;
constexpr std::size_t largest_bound_cost = 4'000'000;

std::size_t phases_of(const plan::trace& t) {
  std::size_t phases = 1;
  for (std::size_t i = 1; i < t.steps.size(); ++i) {
    phases += t.steps[i].phase != t.steps[i - 1].phase ? 1 : 0;
  }
  return phases;
}

bool differs(double a, double b) {
  return std::isfinite(a) != std::isfinite(b) || std::abs(a - b) > 0.05 * std::abs(b);
}

}  // namespace

forecast::forecast(plan::trace t, const plan::machine& capacities) : trace_(std::move(t)) {
  const std::size_t accesses =
      std::accumulate(trace_.steps.begin(), trace_.steps.end(), std::size_t{0},
                      [](std::size_t sum, const plan::trace_step& s) { return sum + s.accesses.size(); });
  simulates_ = accesses <= largest_simulated;
  const std::size_t phases = phases_of(trace_);
  if (accesses * phases * phases <= largest_bound_cost) {
    bound_.emplace(trace_, capacities);
    required_ = bound_->required_bytes();
  }
}

bool forecast::much_changed(const std::vector<double>& step_seconds, const plan::machine& rates) const {
  if (last_seconds_.size() != step_seconds.size() || last_rates_.storage.size() != rates.storage.size() ||
      differs(rates.h2d_rate, last_rates_.h2d_rate) || differs(rates.d2h_rate, last_rates_.d2h_rate)) {
    return true;
  }
  for (std::size_t i = 0; i < rates.storage.size(); ++i) {
    if (differs(rates.storage[i].read_rate, last_rates_.storage[i].read_rate) ||
        differs(rates.storage[i].write_rate, last_rates_.storage[i].write_rate)) {
      return true;
    }
  }
  const auto sum = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); };
  return differs(sum(step_seconds), sum(last_seconds_));
}

forecast::figures forecast::update(const std::vector<double>& step_seconds, const plan::machine& rates) {
  if (!bound_ || step_seconds.size() != trace_.steps.size() || step_seconds.empty()) {
    return {};
  }
  if (!much_changed(step_seconds, rates)) {
    return last_;
  }
  for (std::size_t i = 0; i < step_seconds.size(); ++i) {
    trace_.steps[i].seconds = step_seconds[i];
  }
  last_ = {simulates_ ? plan::simulate(trace_, rates).seconds : 0.0, bound_->evaluate(rates, step_seconds).seconds};
  last_seconds_ = step_seconds;
  last_rates_ = rates;
  return last_;
}

}  // namespace forebay::detail
