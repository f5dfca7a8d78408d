#pragma once

#include <limits>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::plan {

/// The rate of a link that is never what one waits for, or whose rate nobody knows.
inline constexpr double unlimited_rate = std::numeric_limits<double>::infinity();

/// What a path does while it reads and writes at once.
struct mixed_rate {
  double read_share = 0.5;             ///< of the bytes moved; above 0 and below 1
  double total_rate = unlimited_rate;  ///< reads and writes together, in bytes per second
};

/// One storage path, in bytes per second.
struct storage_link {
  double read_rate = unlimited_rate;   ///< with nothing written meanwhile
  double write_rate = unlimited_rate;  ///< with nothing read meanwhile
  /// Measured mixes, in any order; none: the time of a mix is the sum of its directions' times. A drive can change
  /// between its operating points (each of these, reads alone, writes alone) as often as one likes, so the time per
  /// byte is taken as the greatest convex function of the read share that exceeds none of them: linear between
  /// neighbours, and a point that is slower than taking turns between two others is never used. That is the right side
  /// for a bound. A path whose directions don't disturb each other is the one mix {r / (r + w), r + w}.
  std::vector<mixed_rate> mixes{};
};

/// The planner's model of the hardware: what bounds and predictions are computed for. A plain value.
struct machine {
  byte_count device_capacity = 0;  ///< of the device tier, workspaces included
  byte_count host_capacity = 0;    ///< of the host tier, less what is never free for items (staging)
  double h2d_rate = unlimited_rate;
  double d2h_rate = unlimited_rate;
  std::vector<storage_link> storage{};  ///< by path; empty: two tiers, and the host is the home of everything
  /// A path's reads and writes share its time, as its `mixes` say. Otherwise they don't disturb each other.
  bool half_duplex_storage = false;
};

/// \throws usage_error naming the field when a rate is not above zero, when a read share is not between 0 and 1, or
/// when mixes are given but `half_duplex_storage` is not.
void validate(const machine& m);

/// Bytes per link.
struct link_volume {
  byte_count h2d = 0;
  byte_count d2h = 0;
  byte_count storage_read = 0;
  byte_count storage_written = 0;

  friend bool operator==(const link_volume&, const link_volume&) = default;
};

/// Of all paths together, at the mix that is best for this direction; unlimited without any.
[[nodiscard]] double storage_read_rate(const machine& m);
[[nodiscard]] double storage_write_rate(const machine& m);
/// The least time in which the paths together can read and write so much, however the bytes are spread over them.
[[nodiscard]] double least_storage_seconds(const machine& m, byte_count read, byte_count written);
/// The greatest total rate of all paths together when this share of the bytes (0 to 1) is read; unlimited without any.
[[nodiscard]] double storage_rate(const machine& m, double read_share);

}  // namespace forebay::plan
