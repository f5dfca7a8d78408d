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

/// Rates that differ by less count as equal.
inline constexpr double equal_rates = 0.03;

/// No shape that is tried has more in flight.
inline constexpr byte_count most_probed_in_flight = 64_MiB;
/// The largest block that is tried.
inline constexpr byte_count largest_probed_block = 4_MiB;
/// A path is worth probing when it has at least this much of the pages.
inline constexpr byte_count least_probed_share = 256_MiB;

/// The shapes to try, those with less in flight first, of equal ones the larger blocks. `depth` and `merge` are as
/// given in `io::backend_options`: what is not 0 is not varied.
[[nodiscard]] std::vector<transfer_shape> shapes_to_try(unsigned depth, byte_count merge);

/// The block: the largest whose best rate equals the best of all, for larger ones cost less of the processor. The
/// depth: the least with which that block and every smaller one reach what they do at best, for transfers that find no
/// neighbours to be merged with have to keep the drive busy as well, and urgent ones wait for what is in flight. The
/// rates: the block's best ones with at most that depth. By `both`; nothing when no shape has it.
[[nodiscard]] std::optional<shape_rate> choose_shape(const std::vector<shape_rate>& tried);

/// Measures how fast an open file of at least `largest_probed_block` preallocated bytes is read and written in each of
/// the shapes, within about half a second, or one on slow paths. Overwrites up to 64 MiB at its start with zeros.
/// Nothing when each shape could not be tried twice in that time, after any I/O error, and when there is no memory.
/// Call while nothing else uses the backend, whose depth is at least that of the shapes, and the file. `alignment`: of
/// offsets and lengths.
[[nodiscard]] std::vector<shape_rate> measure_shapes(io::backend& backend, int file, byte_count bytes,
                                                     byte_count alignment,
                                                     const std::vector<transfer_shape>& shapes) noexcept;

}  // namespace forebay::store_detail
