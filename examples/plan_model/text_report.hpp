#pragma once

#include <iosfwd>

#include "answer.hpp"

namespace plan_model {

/// For people to read.
void print_report(std::ostream& out, const answer& a);

}  // namespace plan_model
