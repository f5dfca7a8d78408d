#include <forebay/plan/resource.hpp>

#include <array>
#include <cstddef>

namespace forebay::plan {

std::string_view to_string(resource r) {
  constexpr std::array<std::string_view, 7> names{"compute",      "cpu",           "h2d",    "d2h",
                                                  "storage_read", "storage_write", "storage"};
  return names.at(static_cast<std::size_t>(r));
}

}  // namespace forebay::plan
