#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "instances.hpp"

namespace forebay::bench {

/// An instance like those of the file of that kind: "gpt" (a transformer's layers, capacities and rates drawn anew),
/// "random" (any steps), or "adversarial" (what simple rules are bad at). Without figures. The same for equal seeds.
[[nodiscard]] plan::instance generate(const std::string& kind, std::uint32_t seed);

}  // namespace forebay::bench
