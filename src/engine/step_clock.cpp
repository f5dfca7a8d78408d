#include "engine/step_clock.hpp"

#include <algorithm>
#include <utility>

namespace forebay::detail {

void step_clock::reset(std::size_t steps) {
  const std::scoped_lock lock(mutex_);
  seconds_.assign(steps, -1.0);
}

void step_clock::restore(std::vector<double> seconds) {
  const std::scoped_lock lock(mutex_);
  seconds_ = std::move(seconds);
}

step_clock::spent step_clock::ended(std::optional<std::uint32_t> step, const stream& on, time_point granted,
                                    time_point now) {
  const std::scoped_lock lock(mutex_);
  auto found = std::find_if(streams_.begin(), streams_.end(), [&](const stream_clock& s) { return s.on == &on; });
  if (found == streams_.end()) {
    streams_.push_back({&on, granted, on.waited()});
    found = streams_.end() - 1;
  }
  const duration waited = on.waited();
  const duration lately = waited - found->waited;
  const duration computed = std::max(now - std::max(found->last_end, granted) - lately, duration::zero());
  found->last_end = now;
  found->waited = waited;
  if (step) {
    note(*step, to_seconds(computed));
  }
  return {computed, lately};
}

void step_clock::ended(std::uint32_t step, time_point granted, time_point now) {
  const std::scoped_lock lock(mutex_);
  note(step, to_seconds(now - granted));
}

void step_clock::note(std::uint32_t step, double seconds) {
  if (step >= seconds_.size()) {
    return;  // the order has changed since the lease was granted
  }
  constexpr double weight = 0.3;  // of a new measurement
  double& known = seconds_[step];
  const double measured = std::max(seconds, 0.0);
  known = known < 0.0 ? measured : known + weight * (measured - known);
}

std::vector<double> step_clock::seconds() const {
  const std::scoped_lock lock(mutex_);
  const bool complete = std::all_of(seconds_.begin(), seconds_.end(), [](double s) { return s >= 0.0; });
  return complete ? seconds_ : std::vector<double>{};
}

}  // namespace forebay::detail
