#pragma once

#include <optional>

#include <forebay/plan/verify.hpp>

namespace forebay::plan::detail {

/// The first breach of: every step runs once; each engine's steps follow the listed order cyclically; and for some
/// lead of the host's engine of -1, 0 or 1 iterations, conflicting steps follow it as well. O(operations + accesses).
[[nodiscard]] std::optional<breach> program_order_breach(const trace& t, const schedule& s);

}  // namespace forebay::plan::detail
