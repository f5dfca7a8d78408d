#include <forebay/memory/host_limits.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace forebay {
namespace {

namespace fs = std::filesystem;

// cgroup v1 has no word for "unlimited": it shows the largest page-rounded 63-bit number (2^63 - page size).
constexpr byte_count v1_unlimited = byte_count{1} << 62U;

std::optional<byte_count> parse_number(std::string_view text) {
  byte_count value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end == text.data()) {
    return std::nullopt;
  }
  return value;
}

/// The number in a file that holds one; nothing when it isn't there, or is "max".
std::optional<byte_count> read_number(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  return in >> word ? parse_number(word) : std::nullopt;
}

/// The number behind `key` in a file of "key value" lines ("MemAvailable:   123 kB").
std::optional<byte_count> read_keyed(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string found;
    std::string value;
    if (words >> found >> value && found == key) {
      return parse_number(value);
    }
  }
  return std::nullopt;
}

struct hierarchy {
  std::string_view title;
  fs::path mount;
  std::string_view limit_file;
  std::string_view use_file;
  std::string_view reclaimable_key;  ///< in memory.stat, children included
};

/// A file's folder in a hierarchy, from the process's own group up to the root.
std::vector<fs::path> ancestors(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> folders;
  fs::path relative = fs::path(group).relative_path().lexically_normal();
  if (relative == ".") {
    relative.clear();
  }
  if (!relative.empty() && *relative.begin() == "..") {
    relative.clear();  // a group outside this namespace's root: only the root can be seen
  }
  while (!relative.empty()) {
    folders.push_back(mount / relative);
    relative = relative.parent_path();
  }
  folders.push_back(mount);
  return folders;
}

void take_smaller(host_limit& best, byte_count available, std::string source) {
  if (best.source.empty() || available < best.available) {
    best = {available, std::move(source)};
  }
}

void consider(const hierarchy& h, const std::string& group, host_limit& best) {
  for (const fs::path& folder : ancestors(h.mount, group)) {
    const auto limit = read_number(folder / h.limit_file);
    if (!limit || *limit >= v1_unlimited) {
      continue;
    }
    const byte_count use = read_number(folder / h.use_file).value_or(0);
    const byte_count cache = read_keyed(folder / "memory.stat", h.reclaimable_key).value_or(0);
    const byte_count busy = use - std::min(use, cache);
    take_smaller(best, *limit - std::min(*limit, busy),
                 fmt::format("{} {} {}", h.title, folder.string(), h.limit_file));
  }
}

}  // namespace

host_limit available_host_memory(const fs::path& root) {
  host_limit best;
  const fs::path groups = root / "sys/fs/cgroup";
  if (const auto kib = read_keyed(root / "proc/meminfo", "MemAvailable:")) {
    take_smaller(best, *kib * 1024, "MemAvailable");
  }
  const hierarchy v1{"cgroup v1", groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                     "total_inactive_file"};
  const hierarchy v2{"cgroup v2", groups, "memory.max", "memory.current", "inactive_file"};
  const hierarchy hybrid{"cgroup v2", groups / "unified", "memory.max", "memory.current", "inactive_file"};

  std::ifstream in(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {  // "4:memory:/a/b" (v1), "0::/a/b" (v2)
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    std::string controllers(1, ',');
    controllers.append(line, first + 1, second - first - 1).append(1, ',');
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      consider(v2, group, best);
      consider(hybrid, group, best);
    } else if (controllers.find(",memory,") != std::string::npos) {
      consider(v1, group, best);
    }
  }
  return best;
}

}  // namespace forebay
