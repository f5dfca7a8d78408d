#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/resource.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// What is known of the way steps are run, beyond this: device steps run one at a time in the trace's order, host steps
/// likewise, and steps with conflicting accesses (same item, one of them modifies or frees it) in the trace's order.
/// The less is claimed, the weaker the bound; a wrong claim makes it wrong.
struct bound_options {
  /// One thread acquires the steps in the trace's order and runs the host steps itself: a host step has ended before
  /// any later step starts.
  bool single_caller = true;
  /// An iteration starts when all steps of the previous one have ended (transfers may go on).
  bool iterations_join = true;
  /// Phases whose steps start when all steps listed before them have ended, such as an update that waits for the
  /// gradients' norm.
  std::vector<std::string> joining_phases{};
  /// Cut the iteration at so many further steps, evenly, beside the phases' starts: sharper, at a cost that grows with
  /// the square.
  std::uint32_t extra_cuts = 0;
};

/// What one window of the iteration must take at least. Steps `first_step` .. `first_step + steps - 1`, modulo the
/// iteration; host steps may count in another window than the one that lists them.
struct window_charge {
  std::uint32_t first_step = 0;
  std::uint32_t steps = 0;
  std::string phases;  ///< "backward", "update+forward", ...
  double compute_seconds = 0.0;
  double cpu_seconds = 0.0;
  link_volume bytes;  ///< that must move inside the window, each link for itself
  resource binding = resource::compute;
  double seconds = 0.0;  ///< what the binding resource needs
};

struct bound_result {
  double seconds = 0.0;  ///< no schedule's long-run time per iteration is less
  /// A partition of the iteration; its seconds add up to the bound, unless `whole` gives more.
  std::vector<window_charge> windows;
  /// The iteration as a whole, charged to one resource.
  window_charge whole;
};

/// The phase-wise lower bound on an iteration's time. The volumes depend on the order, the sizes and the capacities
/// only and are computed once; rates and durations may change afterwards. Immutable; thread-safe.
///
/// Cost: volumes O(cuts^2 accesses log), an evaluation O(cuts^3 + steps).
class phase_bound {
 public:
  /// Of `capacities` only the capacities count, and whether there is storage. \throws usage_error
  phase_bound(const trace& t, const machine& capacities, const bound_options& options = {});
  ~phase_bound();
  phase_bound(phase_bound&&) noexcept;
  phase_bound& operator=(phase_bound&&) noexcept;

  /// The bound with the trace's own durations, or with others (by step index). \throws usage_error
  [[nodiscard]] bound_result evaluate(const machine& rates) const;
  [[nodiscard]] bound_result evaluate(const machine& rates, std::span<const double> step_seconds) const;

  /// What each link must move at least per iteration, in the long run, whatever the rates.
  [[nodiscard]] link_volume required_bytes() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace forebay::plan
