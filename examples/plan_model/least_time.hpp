#pragma once

#include <string>
#include <vector>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace plan_model {

/// A part of the iteration, and the resource that alone needs so long for what must happen in it.
struct charge {
  std::string phases;    ///< "in forward", "from backward to forward"
  std::string resource;  ///< "device", "CPU", "link to the device", "drive writes", ...
  double seconds = 0.0;
};

/// What no schedule can beat, with its proof checked. The one place that knows which of the library's bounds is used.
struct least_time {
  double seconds = 0.0;
  std::vector<charge> charges;  ///< that add up to about it

  /// The resource that is charged most; empty when nothing is.
  [[nodiscard]] std::string binding() const;
};

[[nodiscard]] least_time find_least_time(const forebay::plan::trace& work, const forebay::plan::machine& m,
                                         const forebay::plan::execution_model& execution);

}  // namespace plan_model
