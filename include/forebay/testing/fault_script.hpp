#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/base/clock.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::testing {

/// Which transfers a fault looks at.
struct fault_filter {
  std::optional<io::operation_kind> kind;  ///< nothing: reads and writes
  int file = -1;                           ///< descriptor; -1: any
  int path = -1;                           ///< index among the files announced to the backend; -1: any

  [[nodiscard]] bool operator==(const fault_filter&) const = default;
};

/// Which of the transfers that it looks at a fault strikes.
struct fault_trigger {
  std::uint64_t first = 1;                                         ///< the first that may be struck, counted from 1
  std::uint64_t every = 1;                                         ///< from there every so-manieth
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< strikes in all
  double probability = 1.0;                                        ///< of each strike

  [[nodiscard]] static fault_trigger always() { return {}; }
  /// The n-th, counted from 1, and no other.
  [[nodiscard]] static fault_trigger nth(std::uint64_t n) { return {n, 1, 1, 1.0}; }
  /// Each with this probability.
  [[nodiscard]] static fault_trigger chance(double p) { return {1, 1, std::numeric_limits<std::uint64_t>::max(), p}; }

  [[nodiscard]] bool operator==(const fault_trigger&) const = default;
};

/// What a fault does to a transfer that it strikes; `io_faults` says it in full.
enum class fault_effect : std::uint8_t {
  delay,
  reorder,
  shorten,
  underreport,
  fail,
  tear,
  stale_read,
  stale_completion,
  flip_bit,
  refuse
};

struct fault {
  fault_effect what = fault_effect::fail;
  fault_trigger when{};
  fault_filter where{};
  int error_number = 0;                                               ///< of `fail` and `refuse`
  duration least{};                                                   ///< of `delay`
  duration most{};                                                    ///< of `delay`; the limit of `reorder`
  std::uint64_t later = 0;                                            ///< of `reorder`
  io::interceptor::service service = io::interceptor::service::ring;  ///< of `refuse`

  [[nodiscard]] bool operator==(const fault&) const = default;
};

/// Faults in the order in which they are looked up: a plain value, which drives every backend (`io_faults`).
struct fault_script {
  std::vector<fault> faults;

  [[nodiscard]] bool operator==(const fault_script&) const = default;
};

/// A script from text: one fault a line, `#` starts a comment. A line is an effect and then, in any order, conditions.
///
///     fail EIO write path 1 nth 3      # the third write to the second path
///     delay 0..20ms read
///     reorder 8 within 50ms chance 0.1
///     shorten chance 0.2 most 5
///     underreport from 10 every 3
///     tear nth 4                       # writes
///     stale read nth 2
///     stale completion chance 0.01
///     flip chance 0.01                 # reads
///     refuse ring EPERM                # or: memory, files
///
/// Conditions: `read`, `write`, `path N` (from 0), `file N` (a descriptor), `nth N`, `from N`, `every N`, `most N`,
/// `chance P`. Times are a number and `ns`, `us`, `ms` or `s`; of a range the unit of the end counts for both.
/// \throws usage_error naming the line and the word.
[[nodiscard]] fault_script parse_fault_script(std::string_view text);

/// The text that parses into the same script.
[[nodiscard]] std::string to_text(const fault_script& script);

}  // namespace forebay::testing
