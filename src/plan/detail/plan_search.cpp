#include "plan/detail/plan_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <forebay/plan/evaluate.hpp>

#include "plan/detail/cost.hpp"

namespace forebay::plan::detail {
namespace {

constexpr std::array rules{selection::spread_density, selection::density, selection::furthest_next_use};
constexpr std::array slacks{0.0, 0.05, 0.1, 0.2, 0.35, 0.5};
constexpr std::array persisting{0.0, -1.0, 1.0, -3.0, 3.0};
constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
constexpr std::array limits{unlimited, 3U, 6U, 12U, 24U};  // in positions
constexpr std::array parkings{0.0, 1.0, 0.9, 0.7};
constexpr std::array leads{0.05, 0.0, 0.02, 0.1, 0.2, 0.4, 0.8};

/// The host's choices don't matter where it has room for everything.
bool host_is_short(const search_problem& p) {
  return std::accumulate(p.order.item_bytes.begin(), p.order.item_bytes.end(), byte_count{0}) >
         p.hardware.host_capacity;
}

/// The accesses after which a copy may stay on the device, or after which one may stay in the host's memory.
std::vector<std::uint32_t> open_gaps(const search_problem& p, bool host) {
  std::vector<std::uint32_t> open;
  for (std::uint32_t a = 0; a < p.lists.all.size(); ++a) {
    const placed_access& access = p.lists.all[a];
    const bool lives = needs_contents(p.lists.all[p.lists.next_access[a]].how);
    if (lives && (host || access.where == place::device)) {
      open.push_back(a);
    }
  }
  return open;
}

}  // namespace

plan_search::plan_search(const search_problem& p)
    : problem_(p), host_is_short_(host_is_short(p)), open_gaps_{open_gaps(p, false), open_gaps(p, true)} {
  best_.clock = p.lists.starts;
}

bool plan_search::enough() const {
  return found() && result_.predicted.period <= problem_.options.close_enough * problem_.options.known_bound;
}

/// Times one candidate, which becomes the best when it is as good. True when it is better.
bool plan_search::consider(const plan_choices& c) {
  ++result_.candidates;
  const residency_plan plan = plan_residency(problem_.order, problem_.hardware, problem_.lists, c);
  std::optional<schedule> s = emit(problem_.order, problem_.hardware, problem_.lists, plan);
  if (!s) {
    return false;
  }
  evaluation e = evaluate(problem_.order, problem_.hardware, *s, problem_.options.execution);
  if (!e.complete) {
    return false;
  }
  const bool better = !found() || e.period < least_period_;
  if (!better && e.period > least_period_) {
    return false;
  }
  least_period_ = e.period;  // equals too: the search wanders over them
  best_ = c;
  const double cost = cost_of(e, problem_.hardware);
  if (!found() || cost < cost_) {
    cost_ = cost;
    result_.steady = std::move(*s);
    result_.predicted = std::move(e);
  }
  return better;
}

void plan_search::start_from(const plan_search& coarse, const std::vector<item_index>& joined_of) {
  plan_choices c = coarse.best_;
  if (!c.bias.empty()) {
    const access_lists& from = coarse.problem_.lists;
    const access_lists& to = problem_.lists;
    c.bias.assign(2 * to.all.size(), 0.0);
    for (item_index i = 0; i < joined_of.size(); ++i) {
      for (std::uint32_t k = to.first_of_item[i]; k < to.first_of_item[i + 1]; ++k) {  // accessed alike, one by one
        const std::uint32_t here = to.of_item[k];
        const std::uint32_t there = from.of_item[from.first_of_item[joined_of[i]] + (k - to.first_of_item[i])];
        c.bias[here] = coarse.best_.bias[there];
        c.bias[to.all.size() + here] = coarse.best_.bias[from.all.size() + there];
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
    if (!found()) {
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
  const auto each_tier = [&](auto&& sweep_rules) {
    sweep_rules(&plan_choices::device);
    if (host_is_short_) {
      sweep_rules(&plan_choices::host);
    }
  };
  each_tier([&](tier_rule plan_choices::*tier) {
    consider_each(rules, &tier_rule::by, tier);
    consider_each(slacks, &tier_rule::slack, tier);
    consider_each(leads, &tier_rule::lead, tier);
  });
  for (const double parking : parkings) {
    if (host_is_short_ && result_.candidates < until && !enough() && best_.parking != parking) {
      plan_choices c = best_;
      c.parking = parking;
      better = consider(c) || better;
    }
  }
  each_tier([&](tier_rule plan_choices::*tier) {  // what matters less often
    consider_each(persisting, &tier_rule::persisting, tier);
    consider_each(limits, &tier_rule::longest_kept, tier);
    consider_each(limits, &tier_rule::most_ahead, tier);
  });
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
  const auto kind = random_() % 16;
  if (kind < 5) {
    change_rule(changes_host() ? c.host : c.device);
  } else if (kind < 7) {
    change_price(c.price);
  } else if (kind < 8 && found()) {
    c.clock = clock();
  } else if (kind == 8 && host_is_short_) {
    c.parking = parkings[random_() % parkings.size()];
  } else {
    c.bias.resize(2 * problem_.lists.all.size(), 0.0);
    change_bias(c.bias);
  }
  return c;
}

void plan_search::change_rule(tier_rule& rule) {
  const auto kind = random_() % 8;
  if (kind == 0) {
    rule.by = rules[random_() % rules.size()];
  } else if (kind == 5) {
    rule.persisting = std::clamp(rule.persisting + within(-1.0, 1.0), -8.0, 8.0);
  } else if (kind == 6) {
    rule.longest_kept = limits[random_() % limits.size()];
  } else if (kind == 7) {
    rule.most_ahead = limits[random_() % limits.size()];
  } else if (kind < 3) {
    rule.slack = std::clamp(rule.slack + within(-0.05, 0.05), 0.0, 0.9);
  } else {
    rule.lead = std::clamp(rule.lead * std::exp(within(-0.7, 0.7)) + within(-0.005, 0.005), 0.0, 1.0);
  }
}

void plan_search::change_price(std::array<double, 5>& price) {
  const auto which = random_() % price.size();
  if (which + 1 < price.size()) {
    price[which] *= std::exp(within(-1.0, 1.0));
  } else {
    price.back() = std::clamp(price.back() + within(-0.5, 0.5), 0.0, 2.0);
  }
}

/// One to three gaps, each alone or with those of all items that are accessed alike.
void plan_search::change_bias(std::vector<double>& bias) {
  const access_lists& lists = problem_.lists;
  for (auto more = 1 + random_() % 3; more-- > 0;) {
    const bool host = changes_host();
    const std::vector<std::uint32_t>& open = open_gaps_[host ? 1 : 0];
    if (open.empty()) {
      continue;
    }
    const std::uint32_t chosen = open[random_() % open.size()];
    const std::size_t tier = host ? lists.all.size() : 0;
    const double value = within(-1.5, 1.5);
    bias[tier + chosen] = value;
    if (random_() % 2 == 0) {
      continue;
    }
    const placed_access& one = lists.all[chosen];
    for (std::uint32_t a = lists.first_of_step[one.step]; a < lists.first_of_step[one.step + 1]; ++a) {
      if (problem_.kinds[lists.all[a].item] == problem_.kinds[one.item]) {
        bias[tier + a] = value;
      }
    }
  }
}

/// When the steps of the best schedule start, made to follow the order of the trace.
std::vector<double> plan_search::clock() const {
  std::vector<double> at(problem_.order.steps.size() + 1, 0.0);
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

double plan_search::within(double low, double high) {
  return low + (high - low) * static_cast<double>(random_() % 4096) / 4095.0;
}

}  // namespace forebay::plan::detail
