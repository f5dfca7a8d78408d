#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay {

struct numa_node {
  unsigned os_index = 0;
  byte_count memory = 0;       ///< bytes installed
  std::vector<unsigned> cpus;  ///< OS indices this process may run on
};

/// What became of a request to bind: `bound` is true only after the kernel was asked and the result was read back.
struct binding_result {
  bool bound = false;
  std::string detail;  ///< what was bound, or why not, with the errno's name
};

/// The machine's NUMA nodes as this process may use them (hwloc; CPU sets need not start at 0). Binding degrades
/// honestly: in a container that refuses it, it returns `bound == false` and the reason, and nothing else changes.
/// Thread-safe after construction.
class topology {
 public:
  /// Reads this machine; or `synthetic_xml` (an hwloc XML text) for tests.
  explicit topology(std::optional<std::string> synthetic_xml = std::nullopt);
  ~topology();
  topology(topology&&) noexcept;
  topology& operator=(topology&&) noexcept;

  [[nodiscard]] const std::vector<numa_node>& nodes() const noexcept;
  /// CPUs that this process may run on: at least 1.
  [[nodiscard]] unsigned usable_cpus() const noexcept;
  /// The node with most usable CPUs (ties: lowest index).
  [[nodiscard]] unsigned preferred_node() const noexcept;

  /// Asks for `memory` (page-aligned) to live on a node; with a single node says so and does nothing.
  [[nodiscard]] binding_result bind_memory(std::span<std::byte> memory, unsigned node_os_index) const;
  [[nodiscard]] binding_result bind_this_thread(unsigned node_os_index) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace forebay
