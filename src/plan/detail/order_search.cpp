#include "plan/detail/order_search.hpp"

#include <cmath>
#include <random>
#include <utility>

#include <forebay/plan/evaluate.hpp>

#include "plan/detail/cost.hpp"
#include "plan/detail/order_moves.hpp"

namespace forebay::plan::detail {
namespace {

constexpr std::uint32_t furthest_shift = 8;
constexpr std::uint32_t longest_round = 5'000;  // schedules timed while it cools down once

bool change(const order_moves& moves, schedule& s, std::mt19937& random) {
  const auto kind = random() % 10;
  return kind < 6 ? moves.shift(s, random, furthest_shift)
                  : (kind < 8 ? moves.keep(s, random) : moves.spill(s, random));
}

}  // namespace

planned improve_order(const trace& t, const machine& m, const planner_options& options, planned plan,
                      const order_search_limits& limits) {
  const execution_model& model = options.execution;
  const bool free_engines = !model.single_caller && !model.iterations_join && model.joining_phases.empty();
  const order_moves moves(t, m, free_engines);
  std::mt19937 random(1);
  schedule current = plan.steady;
  const schedule first = plan.steady;
  const double first_period = plan.predicted.period;
  double period = plan.predicted.period;
  double least_cost = cost_of(plan.predicted, m);
  const double hot = period * 0.3 / static_cast<double>(t.steps.size());
  const std::uint32_t rounds = 1 + limits.schedules / longest_round;
  const std::uint32_t round = 1 + limits.schedules / rounds;
  std::uint32_t timed = 0;
  for (std::uint32_t tries = 0; tries < 4 * limits.schedules && timed < limits.schedules; ++tries) {
    if (plan.predicted.period <= limits.enough) {
      break;
    }
    schedule next = current;
    if (!change(moves, next, random)) {
      continue;
    }
    if (timed++ % round == 0) {  // warm again, from where it began or from the best so far
      const bool from_best = timed / round % 2 == 1;
      current = from_best ? plan.steady : first;
      period = from_best ? plan.predicted.period : first_period;
      continue;
    }
    evaluation e = evaluate(t, m, next, model);
    if (!e.complete) {
      continue;
    }
    const double temperature = hot * (1.0 - static_cast<double>(timed % round) / round);
    const double worse = e.period - period;
    const double chance = static_cast<double>(random() % 65536) / 65536.0;
    if (worse > 0.0 && chance >= std::exp(-worse / (temperature + 1e-300))) {
      continue;
    }
    period = e.period;
    if (const double cost = cost_of(e, m); cost < least_cost) {
      least_cost = cost;
      plan.steady = next;
      plan.predicted = std::move(e);
    }
    current = std::move(next);
  }
  plan.candidates += timed;
  return plan;
}

}  // namespace forebay::plan::detail
