#pragma once

#include <cstdint>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// Equal for equal values on every machine (FNV-1a, 64 bits), so that plans can be kept by them. Of a trace: sizes,
/// places, workspaces and accesses, and neither durations, which vary from run to run, nor phases. Of a machine:
/// everything, rates to the last bit.
[[nodiscard]] std::uint64_t hash_of(const trace& t);
[[nodiscard]] std::uint64_t hash_of(const machine& m);

}  // namespace forebay::plan
