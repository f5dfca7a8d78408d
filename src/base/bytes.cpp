#include <forebay/base/bytes.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

struct unit {
  std::string_view suffix;
  byte_count factor;
};

// A bare letter means the binary unit, as every tool that sizes memory takes it.
constexpr std::array<unit, 20> units{{{"", 1},
                                      {"b", 1},
                                      {"k", 1_KiB},
                                      {"kib", 1_KiB},
                                      {"kb", 1'000},
                                      {"m", 1_MiB},
                                      {"mib", 1_MiB},
                                      {"mb", 1'000'000},
                                      {"g", 1_GiB},
                                      {"gib", 1_GiB},
                                      {"gb", 1'000'000'000},
                                      {"t", 1_TiB},
                                      {"tib", 1_TiB},
                                      {"tb", 1'000'000'000'000},
                                      {"p", 1024_TiB},
                                      {"pib", 1024_TiB},
                                      {"pb", 1'000'000'000'000'000},
                                      {"e", 1024_TiB * 1024},
                                      {"eib", 1024_TiB * 1024},
                                      {"eb", 1'000'000'000'000'000'000}}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\r";
  const std::size_t first = text.find_first_not_of(spaces);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return result;
}

template <typename Number>
std::optional<Number> parse_whole_text(std::string_view text) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// `number` (digits and points only) times `factor`; nothing when it is no number or does not fit.
std::optional<byte_count> scaled(std::string_view number, byte_count factor) {
  if (number.find('.') == std::string_view::npos) {  // whole numbers must not lose digits in a double
    const auto whole = parse_whole_text<byte_count>(number);
    return whole && *whole <= ~byte_count{0} / factor ? std::optional(*whole * factor) : std::nullopt;
  }
  const auto value = parse_whole_text<double>(number);
  const double bytes = value.value_or(0.0) * static_cast<double>(factor);
  return value && bytes < 0x1p64 ? std::optional(static_cast<byte_count>(bytes)) : std::nullopt;
}

}  // namespace

std::string format_bytes(byte_count n) {
  if (n < 1_KiB) {
    return fmt::format("{} B", n);
  }
  constexpr std::array<std::string_view, 6> names{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t i = 0;
  double value = static_cast<double>(n) / 1024.0;
  while (value >= 1023.995 && i + 1 < names.size()) {  // would be shown as 1024.00
    value /= 1024.0;
    ++i;
  }
  const bool whole = value == std::floor(value);
  return whole ? fmt::format("{:.0f} {}", value, names.at(i)) : fmt::format("{:.2f} {}", value, names.at(i));
}

byte_count parse_bytes(std::string_view text) {
  const std::string_view clean = trimmed(text);
  const std::size_t digits = std::min(clean.find_first_not_of("0123456789."), clean.size());
  const std::string suffix = lower(trimmed(clean.substr(digits)));
  const auto known = std::find_if(units.begin(), units.end(), [&](const unit& u) { return u.suffix == suffix; });
  const auto bytes = known == units.end() ? std::nullopt : scaled(clean.substr(0, digits), known->factor);
  if (!bytes) {
    throw usage_error(
        fmt::format("'{}' is not a size below 16 EiB; write a number and a unit, such as 64MiB or 1.5GiB", text));
  }
  return *bytes;
}

}  // namespace forebay
