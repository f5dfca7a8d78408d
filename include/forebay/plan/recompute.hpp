#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// Steps that make items again which then need not be kept: what these steps create, and do not free themselves, can be
/// given up after its last use before the step `before`.
struct recompute_candidate {
  std::uint32_t before = 0;       ///< the first step of the trace that needs the items again
  std::vector<trace_step> steps;  ///< run one after the other right before it; they only read, create and free
};

/// A trace in which some candidates are recomputed.
struct recomputing_trace {
  /// Where a step comes from.
  struct source {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::uint32_t candidate = none;  ///< none: a step of the original trace
    std::uint32_t step = 0;          ///< among the candidate's, or the original's

    friend bool operator==(const source&, const source&) = default;
  };
  /// An item whose contents end with a step, because a candidate makes them again.
  struct given_up_item {
    std::uint32_t step = 0;    ///< of this trace
    std::uint32_t access = 0;  ///< among the step's
    std::uint32_t candidate = 0;
  };

  trace steps;
  std::vector<source> sources;             ///< by step
  std::vector<std::uint32_t> position_of;  ///< by step of the original trace: its number here
  std::vector<given_up_item> given_up;     ///< in order of steps
};

/// The trace with the candidates that are `chosen`: each stands right before its step, those of one step in their own
/// order, and the last step before it that uses what it creates frees that. All may be chosen together: what one of
/// them reads is kept, or made again, until then. O(accesses). \throws usage_error naming the candidate, the step and
/// the item when a candidate writes, reads or creates what it can't: it may read what exists before its step or what it
/// has created itself; and each item that it creates either is freed by it and does not exist there, or exists there
/// and is neither freed nor created between its last use and the next one; and on an unknown step or item, or when
/// sizes differ.
[[nodiscard]] recomputing_trace recompute(const trace& t, std::span<const recompute_candidate> candidates,
                                          const std::vector<bool>& chosen,
                                          const std::function<std::string(item_index)>& name = {});

struct recompute_options {
  /// As much as so many plans of an effort of 1 take, at most: half a second of one core each.
  double effort = 13.0;
  execution_model execution{};
};

/// Which candidates to recompute.
struct recompute_choice {
  std::vector<bool> chosen;   ///< by candidate
  double seconds = 0.0;       ///< per iteration, as predicted; never more than the next two
  double seconds_none = 0.0;  ///< with none of them; infinite when no schedule was found, like all of these
  double seconds_all = 0.0;
  std::uint32_t tried = 0;  ///< sets that were looked at
};

/// Seconds per iteration of a trace; infinite when it can't run.
using iteration_seconds = std::function<double(const trace&)>;

/// The best set of candidates found. They are ranked by the bytes that they give up per second of recomputation, or by
/// that and the time for which they give them up, equals spread over the iteration; how much of the head of either
/// ranking is best is searched in one dimension, then single candidates are added, left out and exchanged. `rough`
/// judges all of these, `most` sets at most; `exact` decides among the three best of them, none and all. Nothing is
/// searched where recomputing nothing takes hardly longer than `least`, which no set can beat.
/// Deterministic if the judges are. \throws usage_error as `recompute` does, and what a judge throws.
[[nodiscard]] recompute_choice choose_recompute(const trace& t, std::span<const recompute_candidate> candidates,
                                                const iteration_seconds& rough, const iteration_seconds& exact,
                                                std::uint32_t most, double least = 0.0);

/// The same, judged by the planner: up to forty plans at a fifth of the effort of the five that decide.
[[nodiscard]] recompute_choice choose_recompute(const trace& t, std::span<const recompute_candidate> candidates,
                                                const machine& m, const recompute_options& options = {});

/// What the planner predicts for the trace on a machine with room for everything: recomputing can bring no more.
/// \throws usage_error on an invalid machine or item.
[[nodiscard]] double seconds_with_room(const trace& t, const machine& m, const execution_model& execution = {});

}  // namespace forebay::plan
