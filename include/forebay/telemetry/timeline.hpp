#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>

namespace forebay::telemetry {

/// A horizontal lane of the timeline: "compute", "host to device", "storage 0 read", "optimizer", "stall", ...
using lane_id = std::uint32_t;

/// One thing that took time.
struct slice {
  lane_id lane = 0;
  std::string name;
  time_point start;
  time_point end;
  byte_count bytes = 0;  ///< moved; 0 when it is no transfer
};

/// Records what happened when. Bounded: beyond `limit` slices the oldest are kept, the rest counted as dropped.
/// Thread-safe; a record costs one short lock.
class timeline {
 public:
  explicit timeline(std::size_t limit = std::size_t{1} << 20U);
  ~timeline();
  timeline(const timeline&) = delete;
  timeline& operator=(const timeline&) = delete;

  /// The lane of that name, made when new; lanes are shown in order of creation.
  [[nodiscard]] lane_id lane(std::string_view name);
  /// \throws usage_error on a lane that is not of this timeline. An end before the start counts as the start.
  void record(slice s);
  /// As `record`, but the start is moved to the end of the lane's last slice when it would overlap it:
  /// for a resource that does one thing at a time, where the start is when the thing was asked for.
  void record_in_order(slice s);

  [[nodiscard]] std::vector<slice> slices() const;
  [[nodiscard]] std::vector<std::string> lanes() const;
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// The Chrome trace-event JSON of a timeline, as Perfetto and chrome://tracing open it: one named thread a lane
/// (further ones, "name (2)", where slices of a lane overlap), complete ("X") events in microseconds since the first
/// slice, `bytes` and `bytes_per_second` as arguments. Always valid UTF-8: other bytes in names become U+FFFD.
[[nodiscard]] std::string to_trace_json(const timeline& t);
/// Writes it to a file. \throws io_error with the path.
void write_trace(const timeline& t, const std::string& path);

}  // namespace forebay::telemetry
