#include <forebay/base/bytes.hpp>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

struct unit {
  std::string_view suffix;
  double factor;
};

// A bare letter means the binary unit, as every tool that sizes memory takes it.
constexpr std::array<unit, 14> units{{{"", 1.0},
                                      {"b", 1.0},
                                      {"k", 0x1p10},
                                      {"kib", 0x1p10},
                                      {"kb", 1e3},
                                      {"m", 0x1p20},
                                      {"mib", 0x1p20},
                                      {"mb", 1e6},
                                      {"g", 0x1p30},
                                      {"gib", 0x1p30},
                                      {"gb", 1e9},
                                      {"t", 0x1p40},
                                      {"tib", 0x1p40},
                                      {"tb", 1e12}}};

std::string lower_without_spaces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  return result;
}

}  // namespace

std::string format_bytes(byte_count n) {
  if (n < 1_KiB) {
    return fmt::format("{} B", n);
  }
  constexpr std::array<std::string_view, 6> names{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t i = 0;
  double value = static_cast<double>(n) / 1024.0;
  while (value >= 1024.0 && i + 1 < names.size()) {
    value /= 1024.0;
    ++i;
  }
  const bool whole = value == std::floor(value);
  return whole ? fmt::format("{:.0f} {}", value, names.at(i)) : fmt::format("{:.2f} {}", value, names.at(i));
}

byte_count parse_bytes(std::string_view text) {
  const auto fail = [&]() -> usage_error {
    return usage_error(fmt::format("'{}' is not a size; write a number and a unit, such as 64MiB or 1.5GiB", text));
  };
  const std::string clean = lower_without_spaces(text);
  const std::size_t digits = clean.find_first_not_of("0123456789.");
  const std::string number = clean.substr(0, digits);
  const std::string suffix = digits == std::string::npos ? "" : clean.substr(digits);
  if (number.empty()) {
    throw fail();
  }
  for (const unit& u : units) {
    if (u.suffix != suffix) {
      continue;
    }
    if (number.find('.') == std::string::npos && u.factor == 1.0) {
      byte_count exact = 0;  // whole bytes must not lose digits in a double
      const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), exact);
      if (status != std::errc{} || end != number.data() + number.size()) {
        throw fail();
      }
      return exact;
    }
    double value = 0.0;
    const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (status != std::errc{} || end != number.data() + number.size() || value * u.factor >= 0x1p64) {
      throw fail();
    }
    return static_cast<byte_count>(value * u.factor);
  }
  throw fail();
}

}  // namespace forebay
