#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <forebay/plan/next_use.hpp>

#include "plan/detail/residency_plan.hpp"

namespace forebay::plan::detail {

/// Turns a residency plan into operations by walking the steps once, with the copies and bytes as a sequential run has
/// them. What the plan says is done when there is room; what it leaves out and a step needs is fetched on demand, and
/// where room is short the copy with the furthest next use leaves.
class emission {
 public:
  emission(const trace& t, const machine& m, const access_lists& lists, const residency_plan& plan);

  /// One iteration from these copies. False when a step's working set does not fit.
  [[nodiscard]] bool run(const std::vector<copies>& at_start);

  [[nodiscard]] std::vector<copies> start_by_plan() const;
  [[nodiscard]] const std::vector<copies>& at_end() const noexcept { return at_; }
  [[nodiscard]] const std::vector<operation>& operations() const noexcept { return operations_; }
  [[nodiscard]] const std::vector<std::uint32_t>& paths() const noexcept { return path_of_; }

 private:
  [[nodiscard]] bool run_step(std::uint32_t step);
  [[nodiscard]] bool assemble(std::uint32_t step);
  void apply(std::uint32_t step);
  void forget_dead(std::uint32_t step);
  void leave_device(std::uint32_t step);
  void leave_host(std::uint32_t position);
  void fetch_to_device(const gap& g);
  void fetch_to_host(std::uint32_t position);

  [[nodiscard]] bool stays_on_device(const gap& parked) const;
  [[nodiscard]] bool bring_to_device(item_index item);
  [[nodiscard]] bool bring_to_host(item_index item);
  [[nodiscard]] bool send_down(item_index item);  // device to host
  [[nodiscard]] bool make_room(copies tier, byte_count bytes);
  [[nodiscard]] bool evict_one(copies tier);
  [[nodiscard]] std::uint64_t eviction_key(item_index item, copies tier) const;
  void note_change(item_index item);
  [[nodiscard]] bool release_copy(item_index item, copies tier);
  void drop(item_index item, copies tier);
  void move(item_index item, link over);
  [[nodiscard]] bool fits(copies tier, byte_count bytes) const;
  [[nodiscard]] byte_count& used(copies tier) { return used_[tier == copies::device ? 0 : 1]; }

  const trace& trace_;
  const machine& machine_;
  const access_lists& lists_;
  const residency_plan& plan_;
  next_use next_use_;
  std::vector<std::vector<std::uint32_t>> device_fetches_;  // by step: indices of gaps, in the order of need
  std::vector<std::vector<std::uint32_t>> host_fetches_;    // by host position
  std::vector<std::vector<std::uint32_t>> host_leaves_;     // by host position: gaps that start there
  std::vector<std::uint32_t> path_of_;
  std::vector<copies> at_;
  std::vector<std::uint32_t> pinned_;  // item -> step + 1 that uses it now
  std::array<byte_count, 2> used_{};
  std::array<std::vector<std::pair<std::uint64_t, item_index>>, 2> evictable_;  // heaps: the first to leave on top
  std::vector<operation> operations_;
  std::uint32_t now_ = 0;
};

}  // namespace forebay::plan::detail
