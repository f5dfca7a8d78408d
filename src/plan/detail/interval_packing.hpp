#pragma once

#include <cstdint>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::plan::detail {

/// `bytes` that stay in a tier at the instants first .. last, or cost a transfer.
struct interval {
  std::int32_t first = 0;
  std::int32_t last = 0;
  byte_count bytes = 0;
};

/// Which bytes could stay, and which transfers nothing can avoid (each at the instant by which it is done).
struct packing_problem {
  std::int32_t begin = 0;           ///< the first instant
  std::vector<byte_count> room;     ///< by instant from `begin` on
  std::vector<interval> intervals;  ///< in any order, inside the instants
  std::vector<interval> forced;     ///< `first` counts
};

/// The least bytes that must be transferred: the forced ones, and those of the intervals that can't stay.
///
/// Bytes are divisible, and each costs the same, so this is the largest sub-collection of unit intervals of which no
/// more cover an instant than there is room: sweep, and where too many are kept give up those that end last. (Belady's
/// rule; an exchange argument proves it optimal.)
[[nodiscard]] byte_count least_transfer(packing_problem problem);

/// The limit of least_transfer / cycles for a problem that repeats every `cycle` instants; `cycles` of them are given,
/// the last two of which may be incomplete. Rounded down. The sweep's state at the ends of cycles is compared: once it
/// recurs, the rest repeats for ever. Else the average over all given cycles, which is no more than the limit, because
/// longer stretches can't cost less per cycle than their parts.
[[nodiscard]] byte_count least_transfer_per_cycle(packing_problem problem, std::int32_t cycle, std::int32_t cycles);

}  // namespace forebay::plan::detail
