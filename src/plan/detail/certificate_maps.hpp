#pragma once

#include <forebay/plan/certificate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/recompute.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// The engine whose steps cut the iteration into a certificate's sub-slots.
[[nodiscard]] place clock_of(const trace& t);

/// The certificate's prices for a trace with further steps: during these, and on either side of them, those of the time
/// between the steps where they stand; memory costs nothing there, for it is paid already.
[[nodiscard]] certificate widened(const certificate& c, const trace& t, const recomputing_trace& r, const machine& m);

/// The prices at the original's sub-slots of those for a trace with further steps.
[[nodiscard]] certificate narrowed(const certificate& wide, const trace& t, const recomputing_trace& r,
                                   const machine& m);

/// `share` of the second's prices, and the rest of the first's: valid when both are.
[[nodiscard]] certificate mixture(const certificate& a, const certificate& b, double share);

}  // namespace forebay::plan::detail
