#include <forebay/plan/planner.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/detail/coarsening.hpp"
#include "plan/detail/feasibility.hpp"
#include "plan/detail/order_search.hpp"
#include "plan/detail/plan_search.hpp"

namespace forebay::plan {
namespace {

// What an effort of 1 is spent on.
constexpr double accesses_planned = 450'000;
constexpr double operations_timed = 2'000'000;
constexpr double most_candidates = 4'000;
constexpr double most_orders = 40'000;
constexpr double fewest_orders = 100;  // fewer changes to an order are not worth a start

/// Several starts, the best of which is searched on.
class planning {
 public:
  planning(const trace& t, const machine& m, const planner_options& options)
      : options_(options),
        coarse_(detail::coarsen(t)),
        problem_(t, m, options_, coarse_.joined_of),
        plain_(problem_),
        refined_(problem_) {}

  std::optional<planned> run() {
    if (coarse_.joined.item_bytes.size() < problem_.order.item_bytes.size()) {
      refine(0.3, 0.2);
    }
    if (!refined_.found() || (!refined_.enough() && affordable(problem_, 0.2) > 10)) {
      search(plain_, problem_, 0.2);
    }
    detail::plan_search& best = better();
    if (!best.found()) {
      return std::nullopt;
    }
    best.vary(affordable(problem_, left_));
    planned result = best.result();
    result.candidates = tried_ + plain_.result().candidates + refined_.result().candidates;
    return result;
  }

 private:
  /// Searches the coarse trace with one share of the effort, and on from its best choices with another.
  void refine(double coarse_share, double share) {
    const std::vector<item_index> distinct = [&] {
      std::vector<item_index> all(coarse_.joined.item_bytes.size());
      for (item_index i = 0; i < all.size(); ++i) {
        all[i] = i;
      }
      return all;
    }();
    const detail::search_problem joined(coarse_.joined, problem_.hardware, options_, distinct);
    detail::plan_search coarse(joined);
    search(coarse, joined, coarse_share);
    tried_ += coarse.result().candidates;
    if (coarse.found()) {
      refined_.start_from(coarse, coarse_.joined_of);
      search(refined_, problem_, share);
    }
  }

  void search(detail::plan_search& s, const detail::search_problem& p, double share) {
    const std::uint32_t until = s.result().candidates + affordable(p, share);
    s.sweep(affordable(p, share) / 2);
    if (s.result().candidates < until) {
      s.vary(until - s.result().candidates);
    }
    left_ -= share;
  }

  [[nodiscard]] std::uint32_t affordable(const detail::search_problem& p, double share) const {
    const double one = static_cast<double>(p.lists.all.size() + 1);
    return static_cast<std::uint32_t>(share * std::min(options_.effort * accesses_planned / one, most_candidates));
  }

  detail::plan_search& better() {
    const bool refined =
        refined_.found() && (!plain_.found() || refined_.result().predicted.period < plain_.result().predicted.period);
    return refined ? refined_ : plain_;
  }

  const planner_options& options_;
  detail::coarse_trace coarse_;
  detail::search_problem problem_;
  detail::plan_search plain_;
  detail::plan_search refined_;
  double left_ = 1.0;  // of the effort
  std::uint32_t tried_ = 0;
};

}  // namespace

planned plan_iteration(const trace& t, const machine& m, const planner_options& options) {
  detail::check_steps_fit(t, m);
  if (t.steps.empty()) {
    return {};
  }
  std::optional<planned> result = planning(t, m, options).run();
  if (!result) {
    detail::report_no_schedule(t, m);
  }
  const double orders =
      std::min(options.effort * operations_timed / static_cast<double>(result->steady.operations.size()), most_orders);
  if (orders < fewest_orders) {
    return std::move(*result);
  }
  return detail::improve_order(t, m, options, std::move(*result),
                               {static_cast<std::uint32_t>(orders), options.close_enough * options.known_bound});
}

}  // namespace forebay::plan
