#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

inline constexpr int trace_json_version = 1;
inline constexpr int schedule_json_version = 1;

/// A schedule with what it was made for, as it is kept in a file.
struct saved_schedule {
  schedule steady;
  std::uint32_t steps = 0;         ///< of the trace
  std::uint64_t trace_hash = 0;    ///< `hash_of` it: without durations and phases
  std::uint64_t machine_hash = 0;  ///< `hash_of` it
};

/// \throws usage_error when the schedule is not of as many items as the trace.
[[nodiscard]] saved_schedule saved(schedule s, const trace& t, const machine& m);

/// Whether the schedule was made for this trace, whatever its durations, and this machine. It may all the same be
/// wrong, which `verify` finds out.
[[nodiscard]] bool is_for(const saved_schedule& s, const trace& t, const machine& m);

/// One JSON object as one line, ended. An access is [item, letters of r, w, c and f]:
///   {"forebay_trace": 1, "item_bytes": [4096, 8192],
///    "steps": [{"where": "device", "seconds": 0.5, "workspace_bytes": 256, "phase": "forward",
///               "accesses": [[0, "r"], [1, "rw"]]}]}
/// A workspace of zero and an empty phase are left out. Numbers read back are bit-equal; a phase that is not UTF-8 does
/// not come back the same. O(accesses).
/// \throws usage_error naming the field when it could not be read back; error when the stream fails.
void write_trace(std::ostream& out, const trace& t);

/// One JSON object as one line, ended. Tiers are letters of d, h and s, hashes are in hexadecimal:
///   {"forebay_schedule": 1, "trace_hash": "00c0ffee00c0ffee", "machine_hash": "0123456789abcdef", "steps": 2,
///    "at_start": ["s", "dh"], "stored_on": [1, 0],
///    "operations": [["storage_read", 0, 1], ["h2d", 0], ["step", 0], ["step", 1], ["drop", 0, "d"]]}
/// What an operation's kind does not use (the path of a copy to the device, say) is not kept. O(operations).
/// \throws usage_error naming the field when it could not be read back; error when the stream fails.
void write_schedule(std::ostream& out, const saved_schedule& s);

/// All of a file of traces, one a line; blank lines are skipped.
/// \param file what messages call the stream
/// \throws usage_error naming the file, the line, the field, its value and the limit when a line is not one object, or
/// a field is unknown, missing, of another type or out of range: every step's accesses are of known items, each at most
/// once, none both created and read; unsupported_error naming the version when it is another; error when the stream
/// fails.
[[nodiscard]] std::vector<trace> read_traces(std::istream& in, std::string_view file = "input");

/// All of a file of schedules, likewise: there are as many `at_start` as `stored_on`, and operations are of known items
/// and steps. Which paths there are, only the machine knows: `verify` checks that.
[[nodiscard]] std::vector<saved_schedule> read_schedules(std::istream& in, std::string_view file = "input");

}  // namespace forebay::plan
