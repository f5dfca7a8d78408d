#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/phase_bound.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::detail {

/// What an iteration should take, and what it must take at least, from the durations and rates measured so far.
class forecast {
 public:
  struct figures {
    double predicted_seconds = 0.0;
    double bound_seconds = 0.0;
  };

  forecast() = default;
  forecast(plan::trace t, const plan::machine& capacities);

  /// `step_seconds` by step, empty when not measured yet: then all figures are zero. Recomputes when a duration or rate
  /// has changed by more than a twentieth since the last time.
  [[nodiscard]] const plan::link_volume& required() const noexcept { return required_; }
  [[nodiscard]] figures update(const std::vector<double>& step_seconds, const plan::machine& rates);

 private:
  [[nodiscard]] bool much_changed(const std::vector<double>& step_seconds, const plan::machine& rates) const;

  plan::trace trace_;
  std::optional<plan::phase_bound> bound_;
  plan::link_volume required_;
  bool simulates_ = false;
  std::vector<double> last_seconds_;
  plan::machine last_rates_;
  figures last_;
};

}  // namespace forebay::detail
