#pragma once

#include <string>

#include "answer.hpp"

namespace plan_model {

/// Everything as one JSON object; bytes, seconds and bytes per second, unlimited as null.
[[nodiscard]] std::string to_json(const answer& a);

}  // namespace plan_model
