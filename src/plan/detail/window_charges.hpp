#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forebay/plan/certificate.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/resource.hpp>

#include "plan/detail/item_demands.hpp"

namespace forebay::plan::detail {

/// What windows between any two of given boundaries can be charged for; for each the greatest of
///   compute, the other engine: the times of the steps that must run inside;
///   H2D: what is needed on the device inside, less what can be there when the window begins;
///   D2H: what is made on the device inside and needed later, less what can be there when it ends;
///   storage: the same for device and host together, in both directions.
/// What must move whatever the capacities (the other engine changes it in between) may be charged instead.
///
/// Proposals, whose prices are to be checked: where the engines run freely of each other a window may be charged too
/// much or too little.
class window_charges {
 public:
  /// `cuts`: boundaries in order, one at least. Links of the device are charged nothing for the time of steps that
  /// leave less room than `least_room` there, as if what they move didn't fit beside these.
  /// All arguments must outlive this. O(cuts x (accesses of groups + cuts)).
  window_charges(const trace& t, const machine& m, const timeline& time, const alike_items& items,
                 const item_demands& demands, std::vector<std::int64_t> cuts, byte_count least_room);

  [[nodiscard]] const std::vector<std::int64_t>& cuts() const { return cuts_; }
  /// From cut number `from` over so many cuts: 1 up to all of them, which is once round.
  [[nodiscard]] double seconds(std::size_t from, std::size_t count) const { return row(from)[count - 1]; }
  /// Those from one cut on, by the number of cuts less one.
  [[nodiscard]] const double* row(std::size_t from) const { return seconds_.data() + from * cuts_.size(); }
  [[nodiscard]] resource charged(std::size_t from, std::size_t count) const;
  /// Adds the prices that charge this window.
  void add_prices(std::size_t from, std::size_t count, certificate& c) const;

 private:
  struct charge {
    double read = 0.0;     ///< bytes
    double written = 0.0;  ///< bytes
    resource what = resource::compute;
    bool capacity = false;  ///< that of a boundary counts
  };

  [[nodiscard]] charge& at(std::size_t from, std::size_t count) { return table_[from * cuts_.size() + count - 1]; }
  [[nodiscard]] const charge& at(std::size_t from, std::size_t count) const {
    return table_[from * cuts_.size() + count - 1];
  }
  /// Where a cut is; `i` up to twice their number.
  [[nodiscard]] std::int64_t cut(std::size_t i) const {
    return cuts_[i % cuts_.size()] + (i >= cuts_.size() ? time_.sub_slots : 0);
  }
  void raise(std::size_t from, std::size_t count, double seconds, resource what, bool capacity);
  double enter(std::int64_t boundary);
  [[nodiscard]] bool is_shut(std::size_t clock_step) const;

  [[nodiscard]] double shut_seconds(std::size_t from, std::size_t count) const;
  void add_step_seconds();
  void charge_steps();
  void charge_other_engine(std::size_t from);
  void charge_h2d(std::size_t from);
  void charge_d2h(std::size_t to);
  void find_reads(std::size_t from);
  void find_writes(std::size_t to);
  void charge_storage();
  [[nodiscard]] bool is_needed(item_index group, std::int64_t boundary) const;

  const trace& trace_;
  const machine& machine_;
  const timeline& time_;
  const alike_items& items_;
  const item_demands& demands_;
  std::vector<std::int64_t> cuts_;
  byte_count least_room_;
  std::vector<double> shut_;       ///< by boundary of two iterations: the seconds of shut steps that began earlier
  std::vector<std::size_t> seen_;  ///< by group: the last round in which it was
  std::size_t round_ = 0;
  std::vector<double> seconds_;  ///< by first cut, then by the number of cuts less one
  std::vector<charge> table_;    ///< likewise
};

}  // namespace forebay::plan::detail
