#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::store_detail {

/// Transfers of `block` bytes, `depth` of them in flight.
struct transfer_shape {
  byte_count block = 0;
  unsigned depth = 0;
  [[nodiscard]] byte_count in_flight() const noexcept { return block * depth; }
};

/// A shape and what a path did with it, in bytes per second; 0: not known.
struct shape_rate {
  transfer_shape shape;
  double read = 0;
  double write = 0;
  /// Of equally many bytes read and written: the harmonic mean; 0 unless both are known.
  [[nodiscard]] double both() const noexcept { return read > 0 && write > 0 ? 2 / (1 / read + 1 / write) : 0; }
};

/// Rates that differ by less count as equal: then what keeps less in flight is better, for urgent transfers wait for
/// all of it.
inline constexpr double worth_more_in_flight = 0.03;

/// No shape that is tried has more in flight.
inline constexpr byte_count most_probed_in_flight = 64_MiB;
/// The largest block that is tried.
inline constexpr byte_count largest_probed_block = 4_MiB;
/// A path is worth probing when it has at least this much of the pages.
inline constexpr byte_count least_probed_share = 256_MiB;

/// The shapes to try, those with less in flight first, of equal ones the larger blocks. `depth` and `merge` are as
/// given in `io::backend_options`: what is not 0 is not varied.
[[nodiscard]] std::vector<transfer_shape> shapes_to_try(unsigned depth, byte_count merge);

/// The one with the least in flight of those whose `both` is within `worth_more_in_flight` of the best; of equal ones
/// the larger blocks. Nothing when no shape has both rates.
[[nodiscard]] std::optional<shape_rate> choose_shape(const std::vector<shape_rate>& tried);

/// Measures how fast an open file of at least `largest_probed_block` preallocated bytes is read and written in each of
/// the shapes, for about half a second at most unless the path is very slow. Overwrites up to 64 MiB at its start with
/// zeros. Returns what it found out in that time, nothing after any I/O error or when there is no memory. Call while
/// nothing else uses the backend, whose depth is at least that of the shapes, and the file. `alignment`: of offsets and
/// lengths.
[[nodiscard]] std::vector<shape_rate> measure_shapes(io::backend& backend, int file, byte_count bytes,
                                                     byte_count alignment,
                                                     const std::vector<transfer_shape>& shapes) noexcept;

}  // namespace forebay::store_detail
