#pragma once

#include <span>
#include <vector>

#include <forebay/plan/bound.hpp>
#include <forebay/plan/certificate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/recompute.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// The seconds below which no schedule's long-run time per iteration can be, whatever candidates are recomputed in
/// whichever iteration. The certificate's sub-slots are those of the trace without any of them.
///
/// Recomputing is one more edge of an item's path: instead of where its copies are from the last use before the
/// candidate's step to the next one, it pays the seconds of the candidate's steps, which run between two steps, times
/// what is left of a second there when all links have been paid (1 - c[k] of check_certificate()). What is accessed by
/// several candidates is decided for all of them together. Left out, which can only make the bound less: that a
/// candidate's steps need their inputs and workspaces, and the time of those that run on the other engine.
///
/// Rounded down by more than all rounding errors. As check_certificate() for each candidate; up to 64 times as much
/// where several share items, beyond which these items pay nothing. \throws usage_error as check_certificate() and
/// recompute() do.
[[nodiscard]] double check_recompute_certificate(const trace& t, std::span<const recompute_candidate> candidates,
                                                 const machine& m, const certificate& c);

/// Searches for prices that prove much for every choice: those that find_bound() finds for the given ones, with their
/// steps counted where they stand, and mixtures of them. `windows` of the result is empty.
/// \throws usage_error as the above, and when a choice is not of as many candidates.
[[nodiscard]] certified_bound find_recompute_bound(const trace& t, std::span<const recompute_candidate> candidates,
                                                   const machine& m, const std::vector<std::vector<bool>>& choices,
                                                   const bound_search_options& options = {});

}  // namespace forebay::plan
