#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forebay/plan/certificate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/resource.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

struct bound_search_options {
  /// Items are single transfers, as in a schedule of this very trace. Otherwise the bound holds as well when they are
  /// split into parts of any size.
  bool items_move_whole = false;
  /// Boundaries that windows may begin and end at, at a time; none: as many as there are, up to 512, or fewer (40 at
  /// least) in a trace with so many accesses that it would take too long.
  std::optional<std::uint32_t> most_cuts{};
  /// What is known of whoever runs the steps: the more, the greater the bound, which then holds for such runs.
  execution_model execution{};
};

/// A part of the iteration, and what it is charged for: the time of one engine's steps in it, or that of the bytes that
/// one link has to move in it. The windows of a bound go once round the iteration.
struct bound_window {
  std::int64_t first_boundary = 0;  ///< of a `certificate`: 2g is the start of step g of the engine that cuts the
                                    ///< iteration, 2g + 1 its end
  std::int64_t end_boundary = 0;    ///< likewise; where the next window begins
  resource charged = resource::compute;
  double seconds = 0.0;
};

/// "h2d 4.39 s from backward to update": from the phase of the step that starts or ends there, to the one that the
/// window ends with.
[[nodiscard]] std::string describe(const trace& t, const bound_window& w);

/// A lower bound on the time per iteration, and its proof.
struct certified_bound {
  double seconds = 0.0;  ///< what check_certificate() says of the proof
  certificate proof;
  std::vector<bound_window> windows;  ///< whose seconds add up to about the bound
};

/// Searches for prices that prove much. The iteration is cut into windows, each charged to the resource that takes
/// longest in it: a window of a link is charged for the bytes that it has to move because its tier can't hold them from
/// the last use, or to the next one. The best partition, by dynamic programming over all pairs of boundaries, gives
/// prices: the window's resource costs all of its time, and memory at one end of it what the link costs. (Source: own
/// derivation. The dual of the fluid relaxation is concave in the prices; hundreds of subgradient steps from the
/// partition's prices raised it on none of the instances that come with the tests.) In a long trace windows begin and
/// end at some boundaries first, then at those near the ones that were used.
/// Nothing is claimed but what check_certificate() proves.
///
/// Deterministic. O(cuts x (accesses + cuts x windows)), where items that are accessed alike count once.
/// \throws usage_error on an invalid machine or trace, or when fewer than two cuts are allowed.
[[nodiscard]] certified_bound find_bound(const trace& t, const machine& m, const bound_search_options& options = {});

/// Seconds that the first iteration takes at least when everything that it needs lies in storage at its start: that of
/// the steps of either engine, and that of reading every item whose contents are needed before they are created.
[[nodiscard]] double start_up_bound(const trace& t, const machine& m);

}  // namespace forebay::plan
