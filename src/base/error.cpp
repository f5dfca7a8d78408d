#include <forebay/base/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

namespace forebay {

std::string describe_errno(int error_number) {
  const char* name = strerrorname_np(error_number);
  const char* text = strerrordesc_np(error_number);
  return name == nullptr ? fmt::format("errno {}", error_number) : fmt::format("{} ({})", name, text);
}

namespace detail {

void broken_precondition(const char* condition, const char* what, const char* file, int line) {
  throw usage_error(fmt::format("{} (expected {} at {}:{})", what, condition, file, line));
}

void broken_invariant(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "forebay: internal invariant broken: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace detail
}  // namespace forebay
