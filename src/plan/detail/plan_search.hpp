#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <forebay/plan/planner.hpp>

#include "plan/detail/residency_plan.hpp"

namespace forebay::plan::detail {

/// Searches the choices from which residency plans are made, by timing the schedules that they give: first one rule
/// after another over a few values, then random changes to the best, which also tell single gaps from their equals and
/// correct the clock by which densities and leads are measured. Deterministic.
class plan_search {
 public:
  plan_search(const trace& t, const machine& m, const planner_options& options);

  /// Considers the best choices for a trace whose item `joined_of[i]` stands for this one's item i.
  void start_from(const plan_search& coarse, const std::vector<item_index>& joined_of);
  /// Up to so many further candidates; stops when close enough to the bound.
  void sweep(std::uint32_t candidates);
  void vary(std::uint32_t candidates);
  /// One candidate. True when it is the best so far.
  bool consider(const plan_choices& c);

  [[nodiscard]] bool found() const noexcept { return !result_.steady.operations.empty(); }
  [[nodiscard]] bool enough() const;
  [[nodiscard]] const planned& result() const noexcept { return result_; }
  [[nodiscard]] const plan_choices& best() const noexcept { return best_; }
  [[nodiscard]] const access_lists& lists() const noexcept { return lists_; }

 private:
  bool sweep_once(std::uint32_t until);
  [[nodiscard]] plan_choices changed();
  [[nodiscard]] std::vector<double> clock() const;
  [[nodiscard]] double share() { return static_cast<double>(random_() % 1024) / 1024.0; }

  const trace& trace_;
  const machine& machine_;
  planner_options options_;
  access_lists lists_;
  plan_choices best_;
  planned result_;
  std::vector<item_index> alike_;
  std::mt19937 random_;
};

}  // namespace forebay::plan::detail
