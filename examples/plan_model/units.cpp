#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <forebay/base/error.hpp>

namespace plan_model {
namespace {

constexpr double giga = 1e9;

struct scale {
  double from;
  const char* name;
};

/// Three digits and the name of the largest scale that is not above the value.
template <std::size_t N>
[[nodiscard]] std::string scaled(double value, const std::array<scale, N>& scales) {
  const scale* best = &scales.back();
  for (const scale& s : scales) {
    if (value >= 0.9995 * s.from) {
      best = &s;
      break;
    }
  }
  const double shown = value / best->from;
  const int decimals = shown >= 99.95 ? 0 : (shown >= 9.995 ? 1 : 2);
  std::string digits = fmt::format("{:.{}f}", shown, decimals);
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') {
      digits.pop_back();
    }
  }
  return digits + best->name;
}

[[nodiscard]] std::string without_per_second(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool per_second = text[i] == '/' && i + 1 < text.size() && (text[i + 1] == 's' || text[i + 1] == 'S');
    if (per_second) {
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

[[noreturn]] void refuse(std::string_view text) {
  throw forebay::usage_error(fmt::format("'{}' is not a rate above zero such as 50GB/s", text));
}

}  // namespace

std::string format_size(double bytes) {
  constexpr std::array<scale, 6> scales{
      {{1e15, " PB"}, {1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}, {1.0, " B"}}};
  return scaled(bytes, scales);
}

std::string format_rate(double bytes_per_second) {
  return std::isinf(bytes_per_second) ? "unlimited" : format_size(bytes_per_second) + "/s";
}

std::string format_seconds(double seconds) {
  if (seconds >= 3599.5) {
    const auto minutes = static_cast<long>(std::lround(seconds / 60.0));
    return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  }
  constexpr std::array<scale, 3> scales{{{1.0, " s"}, {1e-3, " ms"}, {1e-6, " us"}}};
  return scaled(seconds, scales);
}

std::string format_count(double n) {
  constexpr std::array<scale, 4> scales{{{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1.0, ""}}};
  return scaled(n, scales);
}

double parse_rate(std::string_view text) {
  const std::string plain = without_per_second(text);
  double number = 0.0;
  const auto [end, status] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  double rate = number * giga;
  if (status != std::errc{} || end != plain.data() + plain.size()) {
    try {
      rate = static_cast<double>(forebay::parse_bytes(plain));
    } catch (const forebay::usage_error&) {
      refuse(text);
    }
  }
  if (!std::isfinite(rate) || rate < 1.0) {
    refuse(text);
  }
  return rate;
}

std::pair<double, double> parse_rates(std::string_view text) {
  const std::string plain = without_per_second(text);
  const std::size_t slash = plain.find('/');
  if (slash == std::string::npos) {
    const double both = parse_rate(text);
    return {both, both};
  }
  try {
    return {parse_rate(plain.substr(0, slash)), parse_rate(plain.substr(slash + 1))};
  } catch (const forebay::usage_error&) {
    throw forebay::usage_error(fmt::format("'{}' is not two rates above zero such as 12/8 (in GB/s)", text));
  }
}

std::string size_option(forebay::byte_count bytes) {
  constexpr forebay::byte_count decimal = 1'000'000'000;
  if (bytes % decimal == 0) {
    return fmt::format("{}GB", bytes / decimal);
  }
  return bytes % (1ULL << 20U) == 0 ? fmt::format("{}MiB", bytes >> 20U) : fmt::format("{}", bytes);
}

std::string rate_option(double bytes_per_second) { return fmt::format("{}GB/s", bytes_per_second / giga); }

}  // namespace plan_model
