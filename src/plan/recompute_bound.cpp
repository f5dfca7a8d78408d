#include <forebay/plan/recompute_bound.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/detail/certificate_maps.hpp"

namespace forebay::plan {
namespace {

using detail::clock_of;
using detail::mixture;
using detail::narrowed;
using detail::widened;

constexpr std::size_t most_together = 6;

/// Candidates that share items which they give up, with these items.
struct component {
  std::vector<std::uint32_t> candidates;
  std::vector<item_index> items;
};

/// The candidates without what else they access.
std::vector<recompute_candidate> bare(std::span<const recompute_candidate> candidates,
                                      const std::vector<std::vector<item_index>>& given_up) {
  std::vector<recompute_candidate> result(candidates.begin(), candidates.end());
  for (std::size_t c = 0; c < result.size(); ++c) {
    for (trace_step& s : result[c].steps) {
      s.workspace = 0;
      std::erase_if(s.accesses, [&](const item_access& a) {
        const auto& mine = given_up[c];
        return !has(a.how, uses::create) || std::find(mine.begin(), mine.end(), a.item) == mine.end();
      });
    }
  }
  return result;
}

std::vector<std::vector<item_index>> given_up_by(const trace& t, std::span<const recompute_candidate> candidates) {
  const recomputing_trace all = recompute(t, candidates, std::vector<bool>(candidates.size(), true));
  std::vector<std::vector<item_index>> items(candidates.size());
  for (const recomputing_trace::given_up_item& g : all.given_up) {
    items[g.candidate].push_back(all.steps.steps[g.step].accesses[g.access].item);
  }
  return items;
}

std::vector<component> components_of(const std::vector<std::vector<item_index>>& given_up, std::size_t items) {
  std::vector<component> all;
  std::vector<std::size_t> component_of(items, items);
  for (std::uint32_t c = 0; c < given_up.size(); ++c) {
    component joined{{c}, {}};
    for (const item_index i : given_up[c]) {
      if (component_of[i] == items) {
        joined.items.push_back(i);
        continue;
      }
      component& other = all[component_of[i]];  // empty when it has been joined for an earlier item
      joined.candidates.insert(joined.candidates.end(), other.candidates.begin(), other.candidates.end());
      joined.items.insert(joined.items.end(), other.items.begin(), other.items.end());
      other = {};
    }
    for (const item_index i : joined.items) {
      component_of[i] = all.size();
    }
    all.push_back(std::move(joined));
  }
  std::erase_if(all, [](const component& c) { return c.candidates.empty(); });
  return all;
}

/// The trace with the accesses to these items alone, and steps of the other engine that take no time.
trace only(const trace& t, const std::vector<bool>& kept, bool free_of_charge, place clock) {
  trace result = t;
  for (trace_step& s : result.steps) {
    std::erase_if(s.accesses, [&](const item_access& a) { return !kept[a.item]; });
    if (free_of_charge && s.where != clock) {
      s.seconds = 0.0;
    }
  }
  return result;
}

/// Everything about the trace that doesn't depend on the prices.
class checker {
 public:
  checker(const trace& t, std::span<const recompute_candidate> candidates, const machine& m)
      : t_(t), m_(m), clock_(clock_of(t)) {
    const std::vector<std::vector<item_index>> given_up = given_up_by(t, candidates);
    candidates_ = bare(candidates, given_up);
    components_ = components_of(given_up, t.item_bytes.size());
    std::vector<bool> rest(t.item_bytes.size(), true);
    for (const component& c : components_) {
      for (const item_index i : c.items) {
        rest[i] = false;
      }
    }
    rest_ = only(t, rest, false, clock_);
    nothing_ = only(t, std::vector<bool>(t.item_bytes.size(), false), true, clock_);
  }

  [[nodiscard]] double check(const certificate& c) const {
    const double base = check_certificate(nothing_, m_, c);
    double sum = check_certificate(rest_, m_, c);
    double magnitude = std::abs(sum);
    for (const component& of : components_) {
      if (of.candidates.size() > most_together) {
        continue;
      }
      const double least = cheapest(of, c);
      sum += least - base;
      magnitude += std::abs(least) + std::abs(base);
    }
    constexpr double rounding = 1e-11;  // far more than what the terms are rounded down by
    return sum - rounding * (magnitude + size_of_prices(c));
  }

 private:
  [[nodiscard]] double cheapest(const component& of, const certificate& c) const {
    std::vector<bool> kept(t_.item_bytes.size(), false);
    for (const item_index i : of.items) {
      kept[i] = true;
    }
    const trace own = only(t_, kept, true, clock_);
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t subset = 0; subset < 1U << of.candidates.size(); ++subset) {
      std::vector<bool> chosen(candidates_.size(), false);
      for (std::size_t i = 0; i < of.candidates.size(); ++i) {
        chosen[of.candidates[i]] = ((subset >> i) & 1U) != 0;
      }
      const recomputing_trace r = with(own, chosen);
      least = std::min(least, check_certificate(r.steps, m_, widened(c, t_, r, m_)));
    }
    return least;
  }

  /// Only this component's items are accessed, so the other candidates are left out altogether.
  [[nodiscard]] recomputing_trace with(const trace& own, const std::vector<bool>& chosen) const {
    std::vector<recompute_candidate> some;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i]) {
        some.push_back(candidates_[i]);
        for (trace_step& s : some.back().steps) {
          s.seconds = s.where == clock_ ? s.seconds : 0.0;
        }
      }
    }
    return recompute(own, some, std::vector<bool>(some.size(), true));
  }

  /// What prices and capacities make of rounding errors.
  [[nodiscard]] double size_of_prices(const certificate& c) const {
    const double device = std::accumulate(c.device.begin(), c.device.end(), 0.0);
    const double host = std::accumulate(c.host.begin(), c.host.end(), 0.0);
    return device * static_cast<double>(m_.device_capacity) + host * static_cast<double>(m_.host_capacity);
  }

  const trace& t_;
  const machine& m_;
  place clock_;
  std::vector<recompute_candidate> candidates_;
  std::vector<component> components_;
  trace rest_;
  trace nothing_;
};

/// What certificates prove is concave in their prices. So the best scale of each is where halving them no longer helps:
/// full prices make a link's time worth all of the iteration's, and recomputing free.
class price_search {
 public:
  price_search(const checker& check, certificate none) : check_(check), none_(std::move(none)) { consider(none_); }

  void add(const certificate& c) {
    double before = consider(c);
    certificate scaled = c;
    for (int halvings = 0; halvings < 30; ++halvings) {
      scaled = mixture(scaled, none_, 0.5);
      const double now = consider(scaled);
      if (now < before) {
        break;
      }
      before = now;
    }
    found_.push_back(best_.proof);
    found_.push_back(c);
  }

  void mix() {
    found_.push_back(none_);
    for (const double share : {0.5, 0.25, 0.125}) {
      for (const certificate& other : found_) {
        consider(mixture(best_.proof, other, share));
      }
    }
  }

  [[nodiscard]] const certified_bound& best() const { return best_; }

 private:
  double consider(const certificate& c) {
    const double seconds = check_.check(c);
    if (seconds > best_.seconds) {
      best_.seconds = seconds;
      best_.proof = c;
    }
    return seconds;
  }

  const checker& check_;
  certificate none_;
  std::vector<certificate> found_;
  certified_bound best_;
};

}  // namespace

double check_recompute_certificate(const trace& t, std::span<const recompute_candidate> candidates, const machine& m,
                                   const certificate& c) {
  return std::max(checker(t, candidates, m).check(c), 0.0);
}

certified_bound find_recompute_bound(const trace& t, std::span<const recompute_candidate> candidates, const machine& m,
                                     const std::vector<std::vector<bool>>& choices,
                                     const bound_search_options& options) {
  const checker check(t, candidates, m);
  price_search search(check, no_prices(t, m));
  for (const std::vector<bool>& chosen : choices) {
    const recomputing_trace r = recompute(t, candidates, chosen);
    search.add(narrowed(find_bound(r.steps, m, options).proof, t, r, m));
  }
  search.mix();
  return search.best();
}

}  // namespace forebay::plan
