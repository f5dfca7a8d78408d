#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

#include "plan/detail/gaps.hpp"
#include "plan/detail/tier_plan.hpp"

namespace forebay::plan::detail {

/// One access of one step, in the order of the trace.
struct placed_access {
  std::uint32_t step = 0;
  item_index item = 0;
  uses how = uses::none;
  place where = place::device;
};

/// What the steps of a trace ask for, as lists that planning walks. Computed once per trace.
struct access_lists {
  explicit access_lists(const trace& t);

  std::vector<placed_access> all;            ///< by step
  std::vector<std::uint32_t> first_of_step;  ///< step -> index in `all`; one more at the end
  std::vector<std::uint32_t> of_item;        ///< indices in `all`, item after item, by step
  std::vector<std::uint32_t> first_of_item;  ///< item -> index in `of_item`; one more at the end
  std::vector<std::uint32_t> next_access;    ///< by index in `all`: the item's next one, cyclically
  std::vector<double> starts;                ///< of each step when nothing is waited for, and the end
};

/// Where the host's copies are used: each step has three positions there.
enum class host_moment : std::uint32_t { source, step, arrival };
[[nodiscard]] constexpr std::uint32_t host_position(std::uint32_t step, host_moment m) {
  return 3 * step + static_cast<std::uint32_t>(m);
}

/// The chosen residency of both tiers. Device gaps are by access (index in access_lists::all); those of host steps stay
/// empty. Host gaps are by item and position.
struct residency_plan {
  std::vector<gap> device;
  std::vector<gap> host;
  std::vector<std::uint32_t> first_host_of_item;  ///< item -> index in `host`; one more at the end
};

/// What a residency plan is made from: all that a search may vary.
struct plan_choices {
  tier_rule device;
  tier_rule host;
  /// What a second of each link is worth (by plan::link); of the last entry, how much of a storage link's seconds a
  /// copy that leaves the device costs as well.
  std::array<double, 5> price{1.0, 1.0, 1.0, 1.0, 0.0};
  /// Part of the device's memory in which host copies that have to leave may wait for their next use, instead of going
  /// to storage; 0: none may.
  double parking = 0.0;
  std::vector<double> bias;   ///< by access, for the gap after it on the device, then on the host; none when empty
  std::vector<double> clock;  ///< start of each step, ascending, and the end of the iteration
};

/// Plans the device tier, derives from it when the host's copies are used, and plans the host tier for that.
[[nodiscard]] residency_plan plan_residency(const trace& t, const machine& m, const access_lists& lists,
                                            const plan_choices& choices);

/// The operations of a plan, one iteration in its steady state. Nothing when it cannot run in the machine's memory.
[[nodiscard]] std::optional<schedule> emit(const trace& t, const machine& m, const access_lists& lists,
                                           const residency_plan& plan);

}  // namespace forebay::plan::detail
