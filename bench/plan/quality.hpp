#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace forebay::bench {

/// Plans every instance of the folder's files, whole and in `parts`, and prints one table: periods over the certified
/// bound (over the optimum where one is known) beside those of simple rules, and the time that planning took.
/// Returns whether every schedule passed the verifier and none beat what cannot be beaten.
[[nodiscard]] bool print_quality(const std::string& folder, unsigned parts, double effort, std::ostream& out);

/// The same for so many generated instances of each kind but the tiny ones: periods over the bounds that hold for whole
/// items and for parts. Prints a summary of each kind and its worst instance, which is planned once more with ten times
/// the effort: what that gains, the planner had left. Returns likewise.
[[nodiscard]] bool print_generated(std::uint32_t seeds, unsigned parts, double effort, std::ostream& out);

}  // namespace forebay::bench
