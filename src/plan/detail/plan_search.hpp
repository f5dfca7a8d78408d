#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include <forebay/plan/planner.hpp>

#include "plan/detail/residency_plan.hpp"

namespace forebay::plan::detail {

/// What is searched for: the best schedule for a trace on a machine. Refers to all but its lists.
struct search_problem {
  search_problem(const trace& t, const machine& m, const planner_options& o,
                 const std::vector<item_index>& kind_of_item)
      : order(t), hardware(m), options(o), kinds(kind_of_item), lists(t) {}

  const trace& order;
  const machine& hardware;
  const planner_options& options;
  const std::vector<item_index>& kinds;  ///< by item; equal for items that are accessed alike
  access_lists lists;
};

/// Searches the choices from which residency plans are made, by timing the schedules that they give: first one rule
/// after another over a few values, then random changes to the best, which also tell single gaps from their equals and
/// correct the clock by which densities and leads are measured. Deterministic. Refers to the problem.
class plan_search {
 public:
  explicit plan_search(const search_problem& p);

  /// Considers the best choices for the coarse trace in which item `joined_of[i]` stands for this one's item i.
  void start_from(const plan_search& coarse, const std::vector<item_index>& joined_of);
  /// Every value of every rule in turn, until none helps; at least one candidate and at most so many.
  void sweep(std::uint32_t candidates);
  /// So many random changes.
  void vary(std::uint32_t candidates);

  [[nodiscard]] bool found() const noexcept { return !result_.steady.operations.empty(); }
  /// The best is close enough to the known bound; no more is tried then.
  [[nodiscard]] bool enough() const;
  [[nodiscard]] const planned& result() const noexcept { return result_; }

  const plan_choices& best() const { return best_; }

 private:
  bool consider(const plan_choices& c);
  bool sweep_once(std::uint32_t until);
  [[nodiscard]] plan_choices changed();
  void change_rule(tier_rule& rule);
  void change_price(std::array<double, 5>& price);
  void change_bias(std::vector<double>& bias);
  [[nodiscard]] bool changes_host() { return host_is_short_ && random_() % 2 == 0; }
  [[nodiscard]] std::vector<double> clock() const;
  [[nodiscard]] double within(double low, double high);

  const search_problem& problem_;
  bool host_is_short_;
  std::array<std::vector<std::uint32_t>, 2> open_gaps_;  // of the device, of the host: accesses before them
  plan_choices best_;
  double least_period_ = 0.0;
  double cost_ = 0.0;  // of the result
  planned result_;
  std::mt19937 random_;
};

}  // namespace forebay::plan::detail
