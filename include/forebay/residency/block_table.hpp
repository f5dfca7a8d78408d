#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/id.hpp>
#include <forebay/device/device.hpp>
#include <forebay/memory/extent_allocator.hpp>
#include <forebay/plan/order.hpp>
#include <forebay/store/page_store.hpp>

namespace forebay {

inline constexpr std::uint32_t no_block = ~std::uint32_t{0};

/// One block's copy in the device or the host tier.
///
///   absent -> placing (waits for victims to leave) -> placed (has memory, no contents) -> arriving -> present ->
///   absent
///
/// A copy is *valid* when present. `placed` turns present at once when a step creates the block.
struct replica {
  enum class state : std::uint8_t { absent, placing, placed, arriving, present };

  state now = state::absent;
  bool fixed = false;  ///< the memory stays when the contents go: the home slot of a run without storage
  extent place;        ///< in the tier's arena: placed, arriving and present (and always when fixed)
  extent claim;        ///< the region being cleared for it: placing
  std::uint32_t victim_of = no_block;  ///< the block whose claim waits for this copy's memory
  std::uint32_t pins = 0;    ///< leases that may still use it: live ones, and ended ones whose stream has not passed
  std::uint32_t wanted = 0;  ///< requests that need it to stay

  [[nodiscard]] bool valid() const noexcept { return now == state::present; }
  [[nodiscard]] bool has_memory() const noexcept {
    return now == state::placed || now == state::arriving || now == state::present;
  }
  [[nodiscard]] bool held() const noexcept { return pins != 0 || wanted != 0; }
};

/// A point of a stream that later users of a device copy must wait for.
struct stream_use {
  const stream* on = nullptr;
  stream_point point = 0;
};

/// The unit of residency. Owned by the engine's table; all fields are guarded by the engine's mutex.
struct block_record {
  std::uint32_t index = no_block;
  std::string name;      ///< of its tensors, for messages
  byte_count bytes = 0;  ///< padded
  std::vector<std::uint32_t> tensors;
  std::uint32_t initialised = 0;  ///< how many of its tensors hold defined contents
  bool activation = false;

  replica device;
  replica host;
  page_id page;         ///< its place in storage; invalid until it first goes there
  bool stored = false;  ///< the storage copy is valid
  bool zero = false;    ///< contents are all zero and no copy exists yet

  bool moving = false;           ///< a transfer of it is in flight: at most one
  stream_point arriving_at = 0;  ///< of the host-to-device stream, once all of a fetch's copies are enqueued
  bool spill_waits = false;      ///< it is to leave the device once its place in the host tier is clear
  bool in_place = false;         ///< engine.read or engine.write works on it now
  std::uint32_t writers = 0;     ///< leases that modify it and whose stream has not passed

  bool scratch = false;       ///< no tensors: a stream's workspace, shared by its leases in stream order
  bool scratch_live = false;  ///< a live lease uses it
  const stream* scratch_of = nullptr;
  place scratch_where = place::device;

  stream_use last_write;               ///< of the device copy
  std::vector<stream_use> last_reads;  ///< one per stream

  [[nodiscard]] bool has_valid_copy() const noexcept { return device.valid() || host.valid() || stored; }
};

/// One registered tensor: where it lies inside its block.
struct tensor_record {
  std::string name;
  std::uint32_t block = no_block;
  byte_count offset = 0;
  byte_count bytes = 0;
  bool initialised = false;
};

}  // namespace forebay
