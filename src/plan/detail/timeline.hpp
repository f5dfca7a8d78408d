#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

/// Sub-slots, the first and the last of a range. Unrolled: those of iteration i are i * sub_slots further on.
struct slot_range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// What a step of the clock does to an item.
struct fixed_access {
  std::int64_t number = 0;  ///< of the step among the clock's
  uses how = uses::none;
};

/// What a step of the other engine does to an item, at its start.
struct floating_access {
  slot_range when;
  std::int64_t listed = 0;  ///< the sub-slot before the clock step that is listed next
  uses how = uses::none;
};

/// All accesses to an item in one iteration, each list in the order in which they happen.
struct item_story {
  std::vector<fixed_access> fixed;
  std::vector<floating_access> floating;
};

/// One iteration as seen from one engine, the clock: the device's, or the host's when there are no device steps.
/// Sub-slot 2g is the run of its step g, 2g + 1 the time from its end to the start of the next. A step of the other
/// engine starts in a range of sub-slots: after the steps before it that it conflicts with, before those after it, and
/// in its own engine's order.
struct timeline {
  place clock = place::device;
  std::int64_t sub_slots = 0;
  std::vector<std::uint32_t> clock_steps;  ///< in order
  std::vector<byte_count> working_set;     ///< by clock step: what it takes in its own tier, workspace included
  std::vector<std::uint32_t> floating_steps;
  std::vector<slot_range> starts;  ///< by floating step
  bool tied = false;               ///< false: no conflict ties the engines together, and `starts` is empty
  std::vector<item_story> items;   ///< without the floating accesses where the engines are not tied
};

/// O(accesses + steps). \throws usage_error when a step names an unknown item, or one twice, or takes no valid time.
[[nodiscard]] timeline timeline_of(const trace& t);
/// The same, where the model says more of when the other engine's steps run. `device_capacity` limits how many device
/// steps can have been granted and not ended.
[[nodiscard]] timeline timeline_of(const trace& t, const execution_model& model, byte_count device_capacity);

/// All other copies are stale from the step's start, nothing is moved meanwhile, and conflicts with any other access.
[[nodiscard]] constexpr bool is_exclusive(uses how) { return modifies(how) || has(how, uses::free); }

}  // namespace forebay::plan::detail
