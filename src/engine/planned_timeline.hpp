#pragma once

#include <string>
#include <vector>

#include <forebay/base/clock.hpp>
#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>
#include <forebay/telemetry/timeline.hpp>

namespace forebay::detail {

struct planned_names {
  std::vector<std::string> steps;  ///< by position in the order
  std::vector<std::string> items;
};

/// Records an iteration as it is predicted, from `start` on: steps, transfers by link, and stalls with what is waited
/// for, on lanes of their own beside those of what really happens.
void record_planned(telemetry::timeline& into, const planned_names& names, const plan::trace& t,
                    const plan::schedule& s, const plan::evaluation& e, time_point start);

}  // namespace forebay::detail
