#pragma once

#include <cstddef>
#include <vector>

#include <forebay/plan/certificate.hpp>

#include "plan/detail/item_path.hpp"

namespace forebay::plan::detail {

/// What a second of a sub-slot costs when all links and the other engine are busy in it: for every path the most that
/// one of its operating points earns.
[[nodiscard]] double charge(const machine& m, const certificate& c, std::size_t sub_slot);

/// Per byte, with each transfer on the path where it is cheapest. One run at least.
[[nodiscard]] std::vector<price_run> price_runs(const machine& m, const certificate& c);

/// \throws usage_error naming the array, the value and the limit.
void check_prices(const machine& m, const certificate& c, std::size_t sub_slots);

}  // namespace forebay::plan::detail
