#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/plan/minimum_capacity.hpp>
#include <forebay/plan/planner.hpp>

#include "hardware.hpp"
#include "least_time.hpp"
#include "training.hpp"
#include "workload.hpp"

namespace plan_model {

struct question {
  training what;                                ///< what is trained, unless
  std::optional<forebay::plan::trace> order{};  ///< an iteration was recorded
  hardware on;
  double effort = 0.3;  ///< of the planner
};

/// A tier that is too small.
struct shortage {
  std::string tier;
  std::string reason;  ///< the step that needs so much at once, or what must be kept
  forebay::byte_count needs = 0;
  forebay::byte_count has = 0;
};

struct prediction {
  granularity cut;
  workload work;
  forebay::plan::capacity_needs needs;
  forebay::byte_count most_alive = 0;  ///< contents that somebody still needs, in all tiers together, at the worst step
  std::vector<shortage> shortages;
  std::string obstacle;  ///< why no schedule was found although no tier is too small at any step
  least_time bound;
  std::optional<forebay::plan::planned> plan;

  [[nodiscard]] bool fits() const { return plan.has_value(); }
  [[nodiscard]] double seconds() const { return plan ? plan->predicted.period : 0.0; }
};

/// How finely the model is cut for this machine: items of at most 3% of a tier; attention and MLP are steps of their
/// own, unless an iteration would then have so many accesses that planning takes long while layers are small beside
/// the device tier.
[[nodiscard]] granularity choose_granularity(const question& q);

/// Plans one iteration and bounds it. A pure function. \throws usage_error
[[nodiscard]] prediction predict(const question& q);

/// Of what is trained; of a recorded order nobody knows. \pre !q.order
[[nodiscard]] double tokens_per_second(const question& q, const prediction& p);
/// Of the device's peak, by the FLOPs that the model asks for: what is recomputed does not count.
[[nodiscard]] double model_flops_utilisation(const question& q, const prediction& p);

}  // namespace plan_model
