#pragma once

#include <limits>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::plan {

/// The rate of a link that is never what one waits for, or whose rate nobody knows.
inline constexpr double unlimited_rate = std::numeric_limits<double>::infinity();

/// One storage path, in bytes per second.
struct storage_link {
  double read_rate = unlimited_rate;
  double write_rate = unlimited_rate;
};

/// The planner's model of the hardware: what bounds and predictions are computed for. A plain value.
struct machine {
  byte_count device_capacity = 0;  ///< of the device tier, workspaces included
  byte_count host_capacity = 0;    ///< of the host tier, less what is never free for items (staging)
  double h2d_rate = unlimited_rate;
  double d2h_rate = unlimited_rate;
  std::vector<storage_link> storage{};  ///< by path; empty: two tiers, and the host is the home of everything
  bool half_duplex_storage = false;     ///< a path's reads and writes share its time
};

/// \throws usage_error naming the field when a rate is not above zero.
void validate(const machine& m);

/// Bytes per link.
struct link_volume {
  byte_count h2d = 0;
  byte_count d2h = 0;
  byte_count storage_read = 0;
  byte_count storage_written = 0;

  friend bool operator==(const link_volume&, const link_volume&) = default;
};

/// Of all paths together; unlimited without any.
[[nodiscard]] double storage_read_rate(const machine& m);
[[nodiscard]] double storage_write_rate(const machine& m);
/// The least time in which the paths together can read and write so much, however the bytes are spread over them.
[[nodiscard]] double least_storage_seconds(const machine& m, byte_count read, byte_count written);

}  // namespace forebay::plan
