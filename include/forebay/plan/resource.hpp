#pragma once

#include <cstdint>
#include <string_view>

namespace forebay::plan {

/// What can hold an iteration back.
enum class resource : std::uint8_t { compute, cpu, h2d, d2h, storage_read, storage_write, storage };
[[nodiscard]] std::string_view to_string(resource r);

}  // namespace forebay::plan
