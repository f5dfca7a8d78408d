#pragma once

#include <cstdint>
#include <random>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// Small changes to a schedule's cyclic order, each of which keeps it meaningful but for capacities: whether a changed
/// schedule fits is for the evaluation to say. Each is O(operations) and returns false, leaving the schedule in any
/// state, when it does not apply.
class order_moves {
 public:
  /// `steps_may_move`: whether steps of the two engines that don't conflict may change places.
  order_moves(const trace& t, const machine& m, bool steps_may_move)
      : trace_(t), machine_(m), steps_may_move_(steps_may_move) {}

  /// Moves one operation past up to `most` of its neighbours, as long as they have nothing to do with it.
  bool shift(schedule& s, std::mt19937& random, std::uint32_t most) const;
  /// Leaves a copy where it is instead of dropping it and bringing it again.
  bool keep(schedule& s, std::mt19937& random) const;
  /// Drops a copy between two of its uses and brings it again, after saving the contents where they would be lost.
  bool spill(schedule& s, std::mt19937& random) const;

  /// Whether the schedule ends where it starts after its start has been set to its end; drops what no longer is used.
  bool close(schedule& s) const;

 private:
  [[nodiscard]] bool independent(const operation& a, const operation& b) const;
  [[nodiscard]] bool touches(const operation& o, item_index item) const;
  [[nodiscard]] std::vector<copies> states_of(const schedule& s, item_index item) const;
  void follow(const operation& o, std::vector<copies>& at) const;
  [[nodiscard]] copies after(const operation& o, item_index item, copies at) const;
  [[nodiscard]] bool uses_copy(const operation& o, item_index item, copies tier) const;
  [[nodiscard]] bool remove_unused(schedule& s, item_index item) const;

  const trace& trace_;
  const machine& machine_;
  bool steps_may_move_;
};

}  // namespace forebay::plan::detail
