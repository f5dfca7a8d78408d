#pragma once

#include <ostream>
#include <string>

namespace forebay::bench {

/// Plans every instance of the folder's files, whole and in `parts`, and prints one table: periods over the certified
/// bound (over the optimum where one is known) beside those of simple rules, and the time that planning took.
/// Returns whether every schedule passed the verifier and none beat what cannot be beaten.
[[nodiscard]] bool print_quality(const std::string& folder, unsigned parts, double effort, std::ostream& out);

}  // namespace forebay::bench
