#include "plan/detail/plan_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <cstdio>

#include <forebay/plan/evaluate.hpp>

#include "plan/detail/coarsening.hpp"

namespace forebay::plan::detail {
namespace {

constexpr std::array rules{selection::spread_density, selection::density, selection::furthest_next_use};
constexpr std::array slacks{0.0, 0.05, 0.1, 0.2, 0.35, 0.5};
constexpr std::array leads{0.05, 0.0, 0.02, 0.1, 0.2, 0.4, 0.8};

}  // namespace

plan_search::plan_search(const trace& t, const machine& m, const planner_options& options)
    : trace_(t), machine_(m), options_(options), lists_(t) {
  best_.clock = lists_.starts;
  auto c = coarsen(t, ~std::size_t{0});
  alike_.resize(t.item_bytes.size());
  for (item_index i = 0; i < alike_.size(); ++i) alike_[i] = c ? c->joined_of[i] : i;
}

bool plan_search::enough() const {
  return found() && result_.predicted.period <= options_.close_enough * options_.known_bound;
}

bool plan_search::consider(const plan_choices& c) {
  ++result_.candidates;
  const residency_plan plan = plan_residency(trace_, machine_, lists_, c);
  std::optional<schedule> s = emit(trace_, machine_, lists_, plan);
  if (!s) {
    return false;
  }
  evaluation e = evaluate(trace_, machine_, *s, options_.execution);
  if (!e.complete || (found() && e.period > result_.predicted.period)) {
    return false;
  }
  const bool better = !found() || e.period < result_.predicted.period;
  best_ = c;
  result_.steady = std::move(*s);
  result_.predicted = std::move(e);
  return better;
}

void plan_search::start_from(const plan_search& coarse, const std::vector<item_index>& joined_of) {
  plan_choices c = coarse.best();
  if (!c.bias.empty()) {
    const access_lists& from = coarse.lists();
    c.bias.assign(2 * lists_.all.size(), 0.0);
    for (item_index i = 0; i < joined_of.size(); ++i) {  // the items' accesses are the same, one by one
      const std::uint32_t first = lists_.first_of_item[i];
      for (std::uint32_t k = first; k < lists_.first_of_item[i + 1]; ++k) {
        const std::uint32_t a = from.of_item[from.first_of_item[joined_of[i]] + (k - first)];
        c.bias[lists_.of_item[k]] = coarse.best().bias[a];
        c.bias[lists_.all.size() + lists_.of_item[k]] = coarse.best().bias[from.all.size() + a];
      }
    }
  }
  consider(c);
}

void plan_search::sweep(std::uint32_t candidates) {
  const std::uint32_t until = result_.candidates + candidates;
  if (!found()) {
    consider(best_);
  }
  for (const double slack : slacks) {  // a start from which one rule after another can be searched
    if (!found() && result_.candidates < until) {
      plan_choices c = best_;
      c.device.slack = c.host.slack = slack;
      c.device.lead = c.host.lead = 0.0;
      consider(c);
    }
  }
  while (result_.candidates < until && !enough() && sweep_once(until)) {
  }
}

/// Every value of every rule, the others as in the best so far. True when any is better.
bool plan_search::sweep_once(std::uint32_t until) {
  bool better = false;
  const auto consider_each = [&](const auto& values, auto tier_rule::*which, tier_rule plan_choices::*tier) {
    for (const auto value : values) {
      if (result_.candidates >= until || enough()) {
        return;
      }
      if (best_.*tier.*which != value) {
        plan_choices c = best_;
        c.*tier.*which = value;
        better = consider(c) || better;
      }
    }
  };
  for (tier_rule plan_choices::*tier : {&plan_choices::device, &plan_choices::host}) {
    consider_each(rules, &tier_rule::by, tier);
    consider_each(slacks, &tier_rule::slack, tier);
    consider_each(leads, &tier_rule::lead, tier);
  }
  return better;
}

void plan_search::vary(std::uint32_t candidates) {
  for (std::uint32_t i = 0; i < candidates && !enough(); ++i) {
    consider(changed());
  }
}

/// The best choices with one of them, or a few gaps, changed at random.
plan_choices plan_search::changed() {
  plan_choices c = best_;
  const auto factor = [&](double range) { return std::exp(range * (2.0 * share() - 1.0)); };
  tier_rule& tier = random_() % 2 == 0 ? c.device : c.host;
  switch (random_() % 16) {
    case 0:
      tier.by = rules[random_() % rules.size()];
      break;
    case 1:
    case 2:
      tier.slack = std::clamp(tier.slack + 0.1 * (share() - 0.5), 0.0, 0.9);
      break;
    case 3:
    case 4:
      tier.lead = std::clamp(tier.lead * factor(0.7) + 0.01 * (share() - 0.5), 0.0, 1.0);
      break;
    case 5:
    case 6:
      c.price[random_() % c.price.size()] *= factor(1.0);
      break;
    case 7:
      c.clock = clock();
      break;
    default: {
      if (c.bias.empty()) {
        c.bias.assign(2 * lists_.all.size(), 0.0);
      }
      for (auto k = 1 + random_() % 3; k-- > 0;) {
        const auto i = static_cast<std::uint32_t>(random_() % lists_.all.size());
        const std::size_t side = random_() % 2 == 0 ? 0 : lists_.all.size();
        const double b = 3.0 * (share() - 0.5);
        c.bias[side + i] = b;
        if (random_() % 2 == 0) {
          for (std::uint32_t x = lists_.first_of_step[lists_.all[i].step]; x < lists_.first_of_step[lists_.all[i].step + 1]; ++x) {
            if (alike_[lists_.all[x].item] == alike_[lists_.all[i].item]) c.bias[side + x] = b;
          }
        }
      }
    }
  }
  return c;
}

/// When the steps of the best schedule start, made to follow the order of the trace.
std::vector<double> plan_search::clock() const {
  std::vector<double> at(trace_.steps.size() + 1, 0.0);
  for (std::size_t i = 0; i < result_.steady.operations.size(); ++i) {
    if (result_.steady.operations[i].what == operation::kind::step) {
      at[result_.steady.operations[i].index] = result_.predicted.times[i].start;
    }
  }
  const double origin = at.front();
  double latest = 0.0;
  for (double& start : at) {
    latest = std::clamp(start - origin, latest, result_.predicted.period);
    start = latest;
  }
  at.back() = result_.predicted.period;
  return at;
}

}  // namespace forebay::plan::detail
