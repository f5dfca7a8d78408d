#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <forebay/base/bytes.hpp>

namespace plan_model {

/// "80 GB", "1.2 TB": decimal units, three digits. Data sheets of memory, links and drives use them.
[[nodiscard]] std::string format_size(double bytes);
/// "50 GB/s"; "unlimited".
[[nodiscard]] std::string format_rate(double bytes_per_second);
/// "1.23 s", "45.6 ms", "1 h 02 min".
[[nodiscard]] std::string format_seconds(double seconds);
/// 7.24e9 is "7.24 billion".
[[nodiscard]] std::string format_count(double n);

/// Parses "50GB/s", "50 GB" or "50" (GB/s) to bytes per second.
/// \throws usage_error naming the text when it is no rate above zero.
[[nodiscard]] double parse_rate(std::string_view text);
/// Parses "12/8", "12GB/s/8GB/s" or one rate, which is then both.
[[nodiscard]] std::pair<double, double> parse_rates(std::string_view text);

/// Text that `parse_bytes` reads back as the same number.
[[nodiscard]] std::string size_option(forebay::byte_count bytes);
/// Text that `parse_rate` reads back as the same number, or the nearest.
[[nodiscard]] std::string rate_option(double bytes_per_second);

}  // namespace plan_model
