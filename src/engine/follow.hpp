#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include <forebay/memory/tier.hpp>

#include "engine/placed_schedule.hpp"

namespace forebay::detail {

/// An operation of the schedule on its way from its turn to its end.
struct planned_entry {
  enum class kind : std::uint8_t { step, bring, write_back, leave };

  kind what = kind::step;
  std::uint32_t index = 0;      ///< the step, or the block
  tier where = tier::device;    ///< of bring and leave
  byte_count offset = 0;        ///< of bring: the place that the plan keeps for the copy
  std::uint64_t turn = 0;       ///< counts up in the schedule's order: the priority of its move
  std::uint32_t operation = 0;  ///< of a step: its index in the schedule, where its places are listed
  bool placed = false;          ///< it has been granted its memory
  bool started = false;         ///< a move is under way, or the step's lease has been granted
  bool may_start = false;       ///< of a step: all earlier operations on its blocks let it
  bool done = false;
  bool gaps_closed = false;  ///< copies were moved so that its memory lies in one piece
};

/// What earlier operations that have not ended yet do to a block.
struct block_marks {
  std::uint64_t pass = 0;          ///< the pass for which these hold
  bool moved = false;              ///< a move that has not started, or one that goes away from where it is
  bool changed = false;            ///< a step changes or ends its contents
  std::array<bool, 2> arriving{};  ///< by tier: a move into it is under way
  std::array<bool, 2> pending{};   ///< by tier: a copy is still to come, or to go
  std::array<bool, 2> used{};      ///< by tier: by a step
};

/// The state of following a schedule: a window of its operations, in its order.
struct follower {
  std::shared_ptr<const placed_schedule> plan;  ///< null: none
  std::array<byte_count, 2> largest{};          ///< by tier: of the blocks that the plan brings there
  std::array<byte_count, 2> workspace{};        ///< by tier: kept at its end for steps' workspaces
  /// Every copy takes exactly its planned address. Otherwise that is a preference: any hole is as good as long as it
  /// works out, and memory that came free out of turn is used at once.
  bool strict = false;
  bool active = false;
  std::list<planned_entry> window;
  std::uint32_t next = 0;      ///< operation of the schedule that the window takes next
  std::uint32_t expected = 0;  ///< step that is to be acquired next
  std::uint64_t turn = 0;
  std::vector<planned_entry*> entry_of_step;  ///< by position: where it is in the window
  std::vector<block_marks> marks;             ///< by block
  std::uint64_t pass = 0;
};

}  // namespace forebay::detail
