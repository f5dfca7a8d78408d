#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/dtype.hpp>
#include <forebay/device/device.hpp>
#include <forebay/engine/recomputation.hpp>
#include <forebay/store/page_store.hpp>
#include <forebay/telemetry/timeline.hpp>

namespace forebay {

/// What a tensor is for. Activations live within an iteration; all other roles persist.
enum class role : std::uint8_t { parameter, gradient, optimizer_state, activation, buffer };

struct tensor_spec {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::uint64_t> shape;
  forebay::role role = forebay::role::buffer;

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape) {
      n *= extent;
    }
    return n;
  }
  [[nodiscard]] byte_count bytes() const { return elements() * size_of(type); }
};

struct host_options {
  byte_count capacity = 0;  ///< bytes; 0: what the container leaves, less a margin of an eighth
  bool huge_pages = true;
  bool pin = true;              ///< page-lock it through the device where that is allowed
  bool require_pinned = false;  ///< refuse to run on pageable memory instead of degrading
};

/// When transfers follow a schedule of the planner; otherwise the engine looks ahead along the order.
enum class planning_policy : std::uint8_t {
  off,
  background,  ///< made in the background from measured durations and rates; followed when it promises to be faster
  always       ///< waited for, and followed whatever it promises (for tests and comparisons)
};

/// Who makes the schedules.
enum class planner_kind : std::uint8_t {
  search,     ///< plan::plan_iteration
  look_ahead  ///< plan::streamed_look_ahead of two steps: a fixed rule, to compare with; followed whatever it promises
};

/// Everything that configures an engine. Move-only: it carries the device.
struct engine_options {
  std::unique_ptr<forebay::device> device;
  host_options host;
  std::vector<storage_path> storage;  ///< empty: two tiers, and the host tier is the home of everything
  byte_count chunk = 1_MiB;           ///< unit of transfer; a power of two >= 4 KiB
  unsigned staging_chunks = 8;  ///< of host memory for storage <-> device traffic; fewer where the host tier is small
  byte_count packed_block_bytes = 16_MiB;  ///< small tensors with the same accesses share blocks up to this size
  bool checksums = true;
  bool direct_io = true;
  io::backend_options io{};
  planning_policy planning = planning_policy::background;
  planner_kind planner = planner_kind::search;
  double planning_effort = 1.0;  ///< 1: about half a second of one core for each schedule; in proportion
  recompute_policy recompute = recompute_policy::automatic;  ///< of the activations for which the order says how
  bool prefetch = true;  ///< off: everything is fetched on demand (for tests and comparisons)
#ifdef NDEBUG
  bool poison_freed_memory = false;  ///< fill freed tier memory with a NaN pattern
#else
  bool poison_freed_memory = true;
#endif
  std::chrono::milliseconds stall_limit{
      60'000};                              ///< an acquire that waits longer fails with a picture of who waits for what
  telemetry::timeline* timeline = nullptr;  ///< not owned; outlives the engine
};

}  // namespace forebay
