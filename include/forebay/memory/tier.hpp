#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <forebay/base/bytes.hpp>

namespace forebay {

/// One level of memory, fastest first.
enum class tier : std::uint8_t { device, host, storage };

inline constexpr std::array<tier, 3> all_tiers{tier::device, tier::host, tier::storage};

[[nodiscard]] constexpr std::string_view to_string(tier t) {
  switch (t) {
    case tier::device:
      return "device";
    case tier::host:
      return "host";
    case tier::storage:
      return "storage";
  }
  return "?";
}

/// One byte count per tier.
struct tier_bytes {
  byte_count device = 0;
  byte_count host = 0;
  byte_count storage = 0;

  [[nodiscard]] byte_count& operator[](tier t) {
    return t == tier::device ? device : (t == tier::host ? host : storage);
  }
  [[nodiscard]] byte_count operator[](tier t) const {
    return t == tier::device ? device : (t == tier::host ? host : storage);
  }
};

}  // namespace forebay
