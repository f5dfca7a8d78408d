#pragma once

#include <filesystem>
#include <string>

#include <forebay/base/bytes.hpp>

namespace forebay {

/// How much host memory this process may still take, and who says so.
struct host_limit {
  byte_count available = 0;  ///< bytes; limit less present use, never negative
  std::string source;        ///< e.g. "cgroup v2 /sys/fs/cgroup/a/b memory.max", "MemAvailable"
};

/// The smallest of MemAvailable and, for each cgroup (v1 or v2) from the process's own up to the root, its limit less
/// its use. "max" and v1's huge "unlimited" values are no limit. `root` is "/" but for tests, which give a folder with
/// `proc/meminfo`, `proc/self/cgroup` and `sys/fs/cgroup`. Reclaimable page cache (`inactive_file`) does not count as
/// use.
[[nodiscard]] host_limit available_host_memory(const std::filesystem::path& root = "/");

}  // namespace forebay
