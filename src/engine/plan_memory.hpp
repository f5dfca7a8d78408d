#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <forebay/base/bytes.hpp>

#include "engine/placed_schedule.hpp"

namespace forebay::detail {

/// What a schedule was made for, as far as it runs on nothing else.
struct plan_key {
  std::uint64_t trace_hash = 0;  ///< sizes and accesses, without durations
  byte_count device_room = 0;
  byte_count host_room = 0;

  friend bool operator==(const plan_key&, const plan_key&) = default;
};

/// A schedule with the durations and rates that it is best for.
struct remembered_plan {
  std::shared_ptr<const placed_schedule> schedule;
  std::vector<double> step_seconds;
  plan::machine rates;
};

/// The schedules of the orders that were set lately: one that comes back is followed at once. Not thread-safe.
class plan_memory {
 public:
  /// Null when there is none for it.
  [[nodiscard]] const remembered_plan* find(const plan_key& key) const {
    for (const entry& e : entries_) {
      if (e.key == key) {
        return &e.plan;
      }
    }
    return nullptr;
  }
  /// In place of the one for the same key; the oldest is forgotten.
  void keep(const plan_key& key, remembered_plan plan) {
    std::erase_if(entries_, [&](const entry& e) { return e.key == key; });
    if (entries_.size() == most) {
      entries_.erase(entries_.begin());
    }
    entries_.push_back({key, std::move(plan)});
  }

 private:
  static constexpr std::size_t most = 8;
  struct entry {
    plan_key key;
    remembered_plan plan;
  };
  std::vector<entry> entries_;
};

}  // namespace forebay::detail
