// Which candidates to recompute.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <forebay/base/error.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/recompute.hpp>

namespace forebay::plan {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Ranks 0 .. n - 1 such that any head of them lies evenly: by their bits in reverse.
std::vector<std::uint32_t> spread_ranks(std::size_t n) {
  std::uint32_t bits = 0;
  while ((std::size_t{1} << bits) < n) {
    ++bits;
  }
  std::vector<std::uint32_t> ranks(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t b = 0; b < bits; ++b) {
      ranks[i] |= ((i >> b) & 1U) << (bits - 1 - b);
    }
  }
  return ranks;
}

/// What a candidate saves and costs.
struct worth {
  double bytes = 0.0;
  double seconds = 0.0;
  double given_up_for = 0.0;  ///< byte-weighted seconds from the last use to the recomputation
};

std::vector<worth> worth_of(const trace& t, std::span<const recompute_candidate> candidates) {
  const recomputing_trace all = recompute(t, candidates, std::vector<bool>(candidates.size(), true));
  std::vector<double> ends{0.0};  // of each step, steps one after the other
  for (const trace_step& s : all.steps.steps) {
    ends.push_back(ends.back() + s.seconds);
  }
  std::vector<worth> result(candidates.size());
  for (std::uint32_t c = 0; c < candidates.size(); ++c) {
    for (const trace_step& s : candidates[c].steps) {
      result[c].seconds += s.seconds;
    }
  }
  for (const recomputing_trace::given_up_item& g : all.given_up) {
    const item_index item = all.steps.steps[g.step].accesses[g.access].item;
    const auto bytes = static_cast<double>(t.item_bytes[item]);
    const double until = ends[all.position_of[candidates[g.candidate].before]] - result[g.candidate].seconds;
    result[g.candidate].bytes += bytes;
    result[g.candidate].given_up_for += bytes * std::max(until - ends[g.step + 1], 0.0);
  }
  return result;
}

/// Candidates, the best first: by density in steps of a quarter of e-fold, equals spread.
std::vector<std::uint32_t> ranking(const std::vector<worth>& all, bool by_time) {
  constexpr double step = 0.25;
  const auto density = [&](const worth& w) {
    const double saved = by_time ? w.given_up_for : w.bytes;
    const double log = std::log(std::max(saved, 1e-30)) - std::log(std::max(w.seconds, 1e-12));
    return static_cast<std::int64_t>(std::floor(log / step));
  };
  const std::vector<std::uint32_t> spread = spread_ranks(all.size());
  std::vector<std::pair<std::int64_t, std::uint32_t>> keys;
  std::vector<std::uint32_t> order(all.size());
  for (std::uint32_t c = 0; c < all.size(); ++c) {
    keys.emplace_back(-density(all[c]), spread[c]);
    order[c] = c;
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

class search {
 public:
  search(const trace& t, std::span<const recompute_candidate> candidates, const iteration_seconds& judge,
         std::uint32_t most)
      : t_(t), candidates_(candidates), judge_(judge), most_(most), best_(candidates.size(), false) {}

  void run() {
    const std::size_t n = candidates_.size();
    consider(std::vector<bool>(n, false));
    consider(std::vector<bool>(n, true));
    const std::vector<worth> all = worth_of(t_, candidates_);
    for (const bool by_time : {false, true}) {
      search_heads(ranking(all, by_time));
    }
    while (!spent() && (flip_one() || exchange_two())) {
    }
  }

  [[nodiscard]] std::uint32_t tried() const { return static_cast<std::uint32_t>(known_.size()); }
  /// The best ones, at most so many, that are neither none nor all.
  [[nodiscard]] std::vector<std::vector<bool>> best_mixes(std::size_t most) const {
    std::vector<std::pair<double, std::vector<bool>>> mixes;
    for (const auto& [set, seconds] : known_) {
      const auto chosen = std::count(set.begin(), set.end(), true);
      if (chosen != 0 && static_cast<std::size_t>(chosen) != set.size() && seconds < infinite) {
        mixes.emplace_back(seconds, set);
      }
    }
    std::sort(mixes.begin(), mixes.end());
    std::vector<std::vector<bool>> result;
    for (std::size_t i = 0; i < std::min(most, mixes.size()); ++i) {
      result.push_back(mixes[i].second);
    }
    return result;
  }

 private:
  [[nodiscard]] bool spent() const { return known_.size() >= most_; }

  /// True when it is the best so far, and was not known.
  bool consider(const std::vector<bool>& set) {
    if (spent() || known_.count(set) != 0) {
      return false;
    }
    const double seconds = judge_(recompute(t_, candidates_, set).steps);
    known_.emplace(set, seconds);
    if (seconds >= least_) {
      return false;
    }
    least_ = seconds;
    best_ = set;
    return true;
  }

  /// How long a head of the ranking is best: over a grid, then between its points.
  void search_heads(const std::vector<std::uint32_t>& ranked) {
    const std::size_t n = ranked.size();
    std::size_t best = 0;
    double least = infinite;
    const auto length = [&](std::size_t k) {
      std::vector<bool> set(n, false);
      for (std::size_t i = 0; i < k; ++i) {
        set[ranked[i]] = true;
      }
      consider(set);
      const auto found = known_.find(set);
      const bool better = found != known_.end() && found->second < least;
      if (better) {
        least = found->second;
        best = k;
      }
      return better;
    };
    constexpr std::size_t grid = 6;
    for (std::size_t i = 0; i <= grid; ++i) {
      length(n * i / grid);
    }
    for (std::size_t step = n / grid; step > 1;) {
      step = (step + 1) / 2;
      const std::size_t middle = best;
      length(middle >= step ? middle - step : 0);
      length(std::min(middle + step, n));
    }
  }

  bool flip_one() {
    bool better = false;
    for (const std::uint32_t c : visits()) {
      std::vector<bool> set = best_;
      set[c] = !set[c];
      better = consider(set) || better;
    }
    return better;
  }

  bool exchange_two() {
    bool better = false;
    for (const std::uint32_t in : visits()) {
      for (const std::uint32_t out : visits()) {
        if (!spent() && best_[in] && !best_[out]) {
          std::vector<bool> set = best_;
          set[in] = false;
          set[out] = true;
          better = consider(set) || better;
        }
      }
    }
    return better;
  }

  /// All candidates, in an order whose heads lie evenly.
  [[nodiscard]] std::vector<std::uint32_t> visits() const {
    const std::vector<std::uint32_t> ranks = spread_ranks(candidates_.size());
    std::vector<std::uint32_t> order(ranks.size());
    for (std::uint32_t c = 0; c < order.size(); ++c) {
      order[c] = c;
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return ranks[a] < ranks[b]; });
    return order;
  }

  const trace& t_;
  std::span<const recompute_candidate> candidates_;
  const iteration_seconds& judge_;
  std::size_t most_;
  std::map<std::vector<bool>, double> known_;
  std::vector<bool> best_;
  double least_ = infinite;
};

}  // namespace

recompute_choice choose_recompute(const trace& t, std::span<const recompute_candidate> candidates,
                                  const iteration_seconds& rough, const iteration_seconds& exact, std::uint32_t most,
                                  double least) {
  const std::vector<bool> none(candidates.size(), false);
  const std::vector<bool> all(candidates.size(), true);
  const auto exactly = [&](const std::vector<bool>& set) { return exact(recompute(t, candidates, set).steps); };
  recompute_choice result{none, exactly(none), 0.0, 0.0, 1};
  result.seconds_none = result.seconds;
  result.seconds_all = exactly(all);
  constexpr double close_enough = 1.003;
  if (candidates.empty() || result.seconds <= close_enough * least) {
    return result;
  }
  const auto take_if_better = [&](const std::vector<bool>& set, double seconds) {
    if (seconds < result.seconds) {
      result.seconds = seconds;
      result.chosen = set;
    }
  };
  take_if_better(all, result.seconds_all);
  search mixes(t, candidates, rough, most);
  mixes.run();
  result.tried = mixes.tried();
  for (const std::vector<bool>& set : mixes.best_mixes(3)) {
    take_if_better(set, exactly(set));
  }
  return result;
}

double seconds_with_room(const trace& t, const machine& m, const execution_model& execution) {
  byte_count all = 0;
  for (const byte_count bytes : t.item_bytes) {
    all += bytes;
  }
  for (const trace_step& s : t.steps) {
    all += workspace_room(s);
  }
  machine roomy = m;
  roomy.device_capacity = std::max(m.device_capacity, all);
  roomy.host_capacity = std::max(m.host_capacity, all);
  planner_options o;
  o.effort = 0.0;
  o.execution = execution;
  return plan_iteration(t, roomy, o).predicted.period;
}

recompute_choice choose_recompute(const trace& t, std::span<const recompute_candidate> candidates, const machine& m,
                                  const recompute_options& options) {
  constexpr std::uint32_t most = 40;
  constexpr double roughness = 5.0;
  constexpr double exact_plans = 5.0;
  const double effort = options.effort / (exact_plans + most / roughness);
  const auto judge = [&](double of_plan) {
    return [&m, &options, of_plan](const trace& candidate) {
      planner_options o;
      o.effort = of_plan;
      o.execution = options.execution;
      try {
        return plan_iteration(candidate, m, o).predicted.period;
      } catch (const capacity_error&) {
        return infinite;
      }
    };
  };
  return choose_recompute(t, candidates, judge(effort / roughness), judge(effort), most,
                          seconds_with_room(t, m, options.execution));
}

}  // namespace forebay::plan
