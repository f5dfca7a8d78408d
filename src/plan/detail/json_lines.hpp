#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "plan/detail/json_fields.hpp"

namespace forebay::plan::detail {

/// Calls `each(value, whose)` for every line that is not blank; `whose` is "FILE:LINE: the `what`'s".
/// \throws usage_error when a line is not JSON; error when the stream fails.
void for_each_json_line(std::istream& in, std::string_view file, std::string_view what,
                        const std::function<void(const json&, const json_checker&)>& each);

/// \throws error when the stream fails
void write_json_line(std::ostream& out, const json& value, std::string_view what);

}  // namespace forebay::plan::detail
