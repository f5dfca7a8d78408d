#pragma once

#include <ostream>
#include <string>

namespace forebay::bench {

/// The 24-layer transformer of the folder's `gpt` file on three machines: seconds per iteration with none of its
/// activations recomputed, with all of them, with the best choice found, and the certified bound for every choice.
/// Returns whether the choice is never worse than none and all, and the bound never above it.
[[nodiscard]] bool print_recompute(const std::string& folder, double effort, std::ostream& out);

}  // namespace forebay::bench
