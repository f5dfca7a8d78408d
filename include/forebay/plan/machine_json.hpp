#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <forebay/plan/machine.hpp>

namespace forebay::plan {

inline constexpr int machine_json_version = 1;

/// Of the CPU, with data far larger than its caches. 0: not measured.
struct compute_rates {
  double copy_one_thread = 0.0;   ///< bytes copied per second (each is read once and written once)
  double copy_all_threads = 0.0;  ///< by all threads together
  double adam_elements = 0.0;     ///< per second, all threads: fp32 AdamW, 28 bytes read and written an element
  double adam_bytes = 0.0;        ///< per second
  std::uint32_t threads = 0;
};

/// Both directions of the device's link at once, in bytes per second. 0: not measured.
struct duplex_rates {
  double h2d = 0.0;
  double d2h = 0.0;
};

/// A machine as `probe` measures it: what plans are made for, and what people want to know beside it.
struct machine_description {
  machine model;
  std::string device_name{};
  std::string host_capacity_source{};              ///< what limits `model.host_capacity`
  std::vector<std::string> storage_directories{};  ///< one a path of `model.storage`, or empty
  duplex_rates link_both_ways{};
  compute_rates compute{};
};

/// As JSON. Units are in the names; an unlimited rate is null; what was not measured is left out. Numbers
/// read back are bit-equal. \throws usage_error when the model is not valid or there are directories for other than all
/// paths; error when the stream fails.
void write_machine(std::ostream& out, const machine_description& d);

/// Reads what `write_machine` wrote, or a file written by hand: `version` alone is required, and what is left out has
/// the value of a default-constructed `machine` (no capacity, unlimited rates).
/// \throws usage_error naming the field when it is unknown (a slip would else be silent), has another type or unit, or
/// makes an invalid machine; unsupported_error naming the version when it is another; error when the stream fails.
[[nodiscard]] machine_description read_machine_description(std::istream& in);
[[nodiscard]] machine read_machine(std::istream& in);

}  // namespace forebay::plan
