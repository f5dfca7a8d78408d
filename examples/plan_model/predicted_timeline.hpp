#pragma once

#include <forebay/telemetry/timeline.hpp>

#include "prediction.hpp"

namespace plan_model {

/// Records one steady iteration of the plan: a lane for the device, the CPU and each direction of each link, and one
/// with what the device waited for whenever it stood still. \throws usage_error when there is no plan.
void record_plan(forebay::telemetry::timeline& to, const prediction& p, const forebay::plan::machine& m);

}  // namespace plan_model
