#pragma once

#include <cstddef>
#include <vector>

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// Prices that prove a lower bound on an iteration's time, whoever found them.
///
/// The steps of one engine, the device's (the host's when there are no device steps), cut the iteration into
/// sub-slots: 2g while its step number g runs, 2g + 1 from its end to the start of the next one. Every array has one
/// price per sub-slot. A second of a link costs, in seconds of the iteration, what the link's array says; a byte that
/// is in a tier at a boundary costs the tier's array: at 2g just after the step started, at 2g + 1 just before it ends.
struct certificate {
  std::vector<double> h2d;
  std::vector<double> d2h;
  std::vector<double> cpu;                         ///< of the engine that doesn't cut the iteration
  std::vector<std::vector<double>> storage_read;   ///< by path: of a second of reading at its `read_rate`
  std::vector<std::vector<double>> storage_write;  ///< by path: of a second of writing at its `write_rate`
  std::vector<double> device;                      ///< of a byte
  std::vector<double> host;                        ///< of a byte

  friend bool operator==(const certificate&, const certificate&) = default;
};

/// Two for every step of the device, or of the host when there are none.
[[nodiscard]] std::size_t sub_slot_count(const trace& t);
/// All prices zero: proves that the steps that cut the iteration take their time.
[[nodiscard]] certificate no_prices(const trace& t, const machine& m);

/// The seconds below which no schedule's long-run time per iteration can be: those in the rules of `schedule`, under
/// any execution model, periodic or not, and with items divided at will. Let c[k] be the prices of a second in which
/// all links and the other engine are busy in sub-slot k; a path adds the most that one of its operating points earns,
/// so that of a half-duplex path without mixes only the greater of its two prices counts. If no c[k] between two steps
/// exceeds 1, then
///
///   T >= sum over steps g of seconds[g] (1 - c[2g]) - sum over boundaries of memory prices x capacities
///      + sum over items of the cheapest cyclic path + sum over the other engine's steps of seconds x least cpu price.
///
/// An item's path is where its current copies are, boundary by boundary; it pays for transfers and for residency, and
/// has to have a copy in the tier of each step that needs it. Steps of the other engine may run anywhere between the
/// steps that their accesses conflict with. Proof: from T subtract price x (time available - time used) of every link
/// and price x (capacity - bytes present) of every boundary, none of which is negative; what is left has the times
/// between steps with a factor 1 - c[k] >= 0, and for each item what it really did, which costs at least the cheapest.
/// Averaged over iterations this covers schedules that are not periodic.
///
/// `items_move_whole`: an item is one transfer and needs its whole room from the start of it. Then it can't be in the
/// tier of a step that doesn't leave room for it, which proves more.
///
/// `model`: where more is known of whoever runs the steps, host steps may run in fewer places. With a single caller a
/// host step has ended when any step listed later starts, and starts when all steps listed before it have been granted:
/// those of the device hold their items from then to their ends, so that the ones that have not ended fit in the tier
/// together. The bound then holds for schedules that are run that way.
///
/// Rounded down by more than all rounding errors. O(runs of equal prices x items x overlapping steps), where items that
/// are accessed alike count once.
/// \throws usage_error naming the array, the value and the limit when an array has the wrong size, a price is negative
/// or not finite, or the prices between two steps add up to more than 1; and on an invalid machine or trace.
[[nodiscard]] double check_certificate(const trace& t, const machine& m, const certificate& c,
                                       bool items_move_whole = false, const execution_model& model = {});

}  // namespace forebay::plan
