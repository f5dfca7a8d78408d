#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace train_gpt {

/// Random bits as a pure function of a key and a counter (the finaliser of splitmix64): any value can be had alone, in
/// any order, the same in every run.
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  };
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
  return mix(mix(key + golden) ^ mix(counter * golden + golden));
}

/// Uniform in [0, n), n > 0. The bias of the plain remainder is below n / 2^64.
[[nodiscard]] constexpr std::uint64_t random_below(std::uint64_t key, std::uint64_t counter, std::uint64_t n) {
  return random_bits(key, counter) % n;
}

/// Standard normal (Box-Muller, one of the pair).
[[nodiscard]] inline double random_normal(std::uint64_t key, std::uint64_t counter) {
  constexpr double to_unit = 1.0 / 9007199254740992.0;                                           // 2^-53
  const double u = (static_cast<double>(random_bits(key, 2 * counter) >> 11U) + 1.0) * to_unit;  // (0, 1]
  const double v = static_cast<double>(random_bits(key, 2 * counter + 1) >> 11U) * to_unit;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

/// A key of its own for everything that has a name (FNV-1a).
[[nodiscard]] constexpr std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
  }
  return random_bits(seed, hash);
}

}  // namespace train_gpt
