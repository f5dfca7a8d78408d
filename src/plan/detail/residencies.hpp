#pragma once

#include <forebay/plan/placement.hpp>

namespace forebay::plan::detail {

/// The stays in the device or the host tier, in the order of their first operations, without offsets.
/// \throws usage_error when the schedule ends a copy that is not there, or its end is not its start.
[[nodiscard]] std::vector<residency> residencies(copies tier, const trace& t, const schedule& s, byte_count alignment);

}  // namespace forebay::plan::detail
