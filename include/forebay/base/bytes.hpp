#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace forebay {

/// Byte counts and offsets are 64-bit everywhere: a 32-bit length silently truncates at 4 GiB.
using byte_count = std::uint64_t;

inline namespace literals {

constexpr byte_count operator""_B(unsigned long long n) { return n; }
constexpr byte_count operator""_KiB(unsigned long long n) { return n << 10U; }
constexpr byte_count operator""_MiB(unsigned long long n) { return n << 20U; }
constexpr byte_count operator""_GiB(unsigned long long n) { return n << 30U; }
constexpr byte_count operator""_TiB(unsigned long long n) { return n << 40U; }

}  // namespace literals

[[nodiscard]] constexpr bool is_power_of_two(byte_count n) { return n != 0 && (n & (n - 1)) == 0; }

/// Least multiple of `alignment` (a power of two) that is >= `n`.
[[nodiscard]] constexpr byte_count align_up(byte_count n, byte_count alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

/// Greatest multiple of `alignment` (a power of two) that is <= `n`.
[[nodiscard]] constexpr byte_count align_down(byte_count n, byte_count alignment) { return n & ~(alignment - 1); }

[[nodiscard]] constexpr byte_count ceil_div(byte_count n, byte_count d) { return (n + d - 1) / d; }

/// "513 B", "1.50 KiB", "64 MiB": at most two decimals, binary units.
[[nodiscard]] std::string format_bytes(byte_count n);

/// Parses "64MiB", "1.5 GiB", "4096", "2GB" (decimal units are powers of 1000; case-insensitive; "64M" means MiB).
/// \throws usage_error naming the text when it is not a size or does not fit 64 bits.
[[nodiscard]] byte_count parse_bytes(std::string_view text);

}  // namespace forebay
