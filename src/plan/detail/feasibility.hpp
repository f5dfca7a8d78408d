#pragma once

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// What every schedule needs. \throws usage_error on an invalid machine or item; capacity_error naming the tier, the
/// step, what it needs and the capacity when a step's working set does not fit.
void check_steps_fit(const trace& t, const machine& m);

/// \throws capacity_error saying what must fit in each tier, and what must pass through it.
[[noreturn]] void report_no_schedule(const trace& t, const machine& m);

}  // namespace forebay::plan::detail
