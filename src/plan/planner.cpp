#include <forebay/plan/planner.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <random>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "plan/detail/residency_plan.hpp"

namespace forebay::plan {
namespace {

using detail::selection;
using detail::tier_rule;

/// What the search varies, as indices into the lists of choices below.
struct choice {
  std::array<std::size_t, 6> at{};  // rule, slack and lead of the device, then of the host
};

constexpr std::array rules{selection::spread_density, selection::density, selection::furthest_next_use};
constexpr std::array slacks{0.0, 0.05, 0.1, 0.2, 0.35, 0.5};
constexpr std::array leads{0.05, 0.0, 0.02, 0.1, 0.2, 0.4, 0.8};  // parts of the iteration without stalls
constexpr std::array<std::size_t, 6> counts{rules.size(), slacks.size(), leads.size(),
                                            rules.size(), slacks.size(), leads.size()};

class search {
 public:
  search(const trace& t, const machine& m, const planner_options& options)
      : trace_(t), machine_(m), options_(options), lists_(t) {}

  planned run() {
    choice best;
    consider(best);
    if (!found_) {  // a start from which coordinates can be searched
      for (std::size_t i = 0; i < slacks.size() && !found_; ++i) {
        consider({{0, i, 1, 0, i, 1}});
      }
    }
    for (bool improved = true; improved && !enough();) {
      improved = false;
      for (std::size_t coordinate = 0; coordinate < counts.size(); ++coordinate) {
        for (std::size_t value = 0; value < counts[coordinate] && !enough(); ++value) {
          choice next = best_choice_;
          next.at[coordinate] = value;
          improved = consider(next) || improved;
        }
      }
    }
    for (int round = 0; round < rounds && !enough(); ++round) {
      const double before = result_.predicted.period;
      lists_.starts = clock_of(result_);
      bool any = true;
      while (any && !enough()) {
        any = descend();
      }
      if (result_.predicted.period > 0.999 * before && round > 0) break;
    }
    force_ = true;
    std::mt19937 random(1);
    bias_.assign(2 * lists_.all.size(), 0.0);
    const unsigned tries = getenv("BT") ? atoi(getenv("BT")) : 0;
    for (unsigned i = 0; i < tries && !enough(); ++i) {
      const std::vector<double> before = bias_;
      for (auto k = 1 + random() % 3; k-- > 0;) {
        bias_[random() % bias_.size()] = (static_cast<double>(random() % 5) - 2.0) * 0.75;
      }
      choice c = best_choice_;
      if (random() % 2 == 0) {
        const std::size_t at = random() % counts.size();
        c.at[at] = random() % counts[at];
      }
      if (!consider(c)) bias_ = before;
    }
    result_.candidates = tried_;
    return result_;
  }
  bool force_ = false;
  std::vector<double> bias_;
  const int rounds = getenv("RR") ? atoi(getenv("RR")) : 3;
  bool descend() {
    bool improved = false;
    for (std::size_t coordinate = 0; coordinate < counts.size(); ++coordinate) {
      for (std::size_t value = 0; value < counts[coordinate] && !enough(); ++value) {
        choice next = best_choice_;
        next.at[coordinate] = value;
        improved = consider(next) || improved;
      }
    }
    return improved;
  }
  std::vector<double> clock_of(const planned& p) const {
    std::vector<double> at(trace_.steps.size() + 1, 0.0);
    const double T = p.predicted.period;
    for (std::size_t i = 0; i < p.steady.operations.size(); ++i) {
      if (p.steady.operations[i].what == operation::kind::step) at[p.steady.operations[i].index] = p.predicted.times[i].start;
    }
    double first = at[0];
    double last = 0;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) { last = std::min(T, std::max(last, at[i] - first)); at[i] = last; }
    at.back() = T;
    return at;
  }

  [[nodiscard]] bool found() const { return found_; }

 private:
  bool enough() const {
    return tried_ >= options_.candidates ||
           (found_ && result_.predicted.period <= options_.close_enough * options_.known_bound);
  }

  bool consider(const choice& c) {
    if (found_ && c.at == best_choice_.at && !force_) {
      return false;
    }
    ++tried_;
    const double whole = lists_.starts.back();
    const auto rule = [&](std::size_t first) {
      return tier_rule{rules[c.at[first]], slacks[c.at[first + 1]], leads[c.at[first + 2]] * whole};
    };
    const detail::residency_plan plan = detail::plan_residency(trace_, machine_, lists_, rule(0), rule(3), bias_);
    std::optional<schedule> s = detail::emit(trace_, machine_, lists_, plan);
    if (!s) {
      return false;
    }
    evaluation e = evaluate(trace_, machine_, *s, options_.execution);
    if (!e.complete || (found_ && (force_ ? e.period > result_.predicted.period : e.period >= result_.predicted.period))) {
      return false;
    }
    found_ = true;
    best_choice_ = c;
    result_.steady = std::move(*s);
    result_.predicted = std::move(e);
    return true;
  }

  const trace& trace_;
  const machine& machine_;
  const planner_options& options_;
  detail::access_lists lists_;
  choice best_choice_;
  planned result_;
  bool found_ = false;
  std::uint32_t tried_ = 0;
};

}  // namespace

planned plan_iteration(const trace& t, const machine& m, const planner_options& options) {
  validate(m);
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      if (a.item >= t.item_bytes.size()) {
        throw usage_error(fmt::format("step {} accesses item {}; there are {}", s, a.item, t.item_bytes.size()));
      }
    }
  }
  if (t.steps.empty()) {
    return {};
  }
  search s(t, m, options);
  planned result = s.run();
  if (!s.found()) {
    throw capacity_error(fmt::format("no schedule found: {} steps in {} bytes on the device and {} on the host",
                                     t.steps.size(), m.device_capacity, m.host_capacity));
  }
  return result;
}

}  // namespace forebay::plan
