#pragma once

#include <forebay/base/error.hpp>

namespace forebay::detail {

/// Throws usage_error with the condition, file and line: a broken promise of the caller.
[[noreturn]] void broken_precondition(const char* condition, const char* what, const char* file, int line);

/// Reports and aborts: a broken promise of the library itself, after which no state can be trusted.
[[noreturn]] void broken_invariant(const char* condition, const char* file, int line) noexcept;

}  // namespace forebay::detail

/// Checks what the caller promised; always on. Throws usage_error.
#define FOREBAY_EXPECTS(condition, what)               \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::forebay::detail::broken_precondition(#condition, what, __FILE__, __LINE__))

/// Checks what the library promises itself; always on (the checks are cheap beside the I/O). Aborts with a message.
#define FOREBAY_ASSERT(condition)                      \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::forebay::detail::broken_invariant(#condition, __FILE__, __LINE__))
