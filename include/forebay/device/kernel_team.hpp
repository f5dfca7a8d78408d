#pragma once

#include <cstddef>

#include <forebay/base/host_device.hpp>

namespace forebay {

/// How many lanes work on one item of a kernel together.
inline constexpr std::size_t kernel_lanes = 16;

// A kernel's body is a trivially copyable function object, called as `body(i)` for each element, or as `body(team, i)`
// for each item whose work the lanes of a team share. It sees its lanes through the team alone: `each` shares indices
// out and ends with all effects visible to all lanes; `sum` and `largest` return the same value to every lane. So the
// host and a GPU do the same operations in the same order, and what is left for a GPU to prove is the launch.

/// A team on the host: one thread does the work of all lanes.
class host_team {
 public:
  /// Calls f(0) ... f(n - 1), in any order.
  template <typename F>
  FOREBAY_HOST_DEVICE void each(std::size_t n, const F& f) const {
    for (std::size_t i = 0; i < n; ++i) {
      f(i);
    }
  }

  /// The sum of term(0) ... term(n - 1): lane j adds the terms j, j + 16, ... in order, then lanes are added in a tree,
  /// j with j + 8, then j + 4, j + 2, j + 1.
  template <typename T, typename Term>
  [[nodiscard]] FOREBAY_HOST_DEVICE T sum(std::size_t n, const Term& term) const {
    T sums[kernel_lanes] = {};
    const std::size_t whole = n / kernel_lanes * kernel_lanes;
    for (std::size_t i = 0; i < whole; i += kernel_lanes) {
      for (std::size_t lane = 0; lane < kernel_lanes; ++lane) {
        sums[lane] += term(i + lane);
      }
    }
    for (std::size_t lane = 0; lane < n - whole; ++lane) {
      sums[lane] += term(whole + lane);
    }
    for (std::size_t half = kernel_lanes / 2; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) {
        sums[lane] += sums[lane + half];
      }
    }
    return sums[0];
  }

  /// The largest of `least` and term(0) ... term(n - 1); NaN counts for nothing.
  template <typename T, typename Term>
  [[nodiscard]] FOREBAY_HOST_DEVICE T largest(std::size_t n, T least, const Term& term) const {
    for (std::size_t i = 0; i < n; ++i) {
      const T value = term(i);
      least = value > least ? value : least;
    }
    return least;
  }

  /// Calls f() once.
  template <typename F>
  FOREBAY_HOST_DEVICE void once(const F& f) const {
    f();
  }
};

}  // namespace forebay
