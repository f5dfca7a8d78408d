#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace plan_model {

/// The whole program: answers on `out`, complaints on `errors`. Returns the exit code: 0 it fits, 1 it does not (or a
/// file cannot be read or written), 2 used wrongly.
[[nodiscard]] int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& errors);

}  // namespace plan_model
