#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <forebay/plan/trace.hpp>

namespace forebay::plan::test {

/// The least bytes per iteration that one link must move, by searching all ways to keep whole items: every set of
/// copies at every step, cyclically, and the cheapest cycle by mean cost (Karp 1978) over any number of iterations.
///
/// Seen from one store ("here"): the device, or device and host together. An item is absent, clean (there is a copy
/// below) or dirty here. Bringing costs when reads are counted, making clean when writes are.
class residency_search {
 public:
  enum class count : std::uint8_t { reads, writes };

  residency_search(const trace& t, byte_count capacity, bool device_only, count what)
      : trace_(t), capacity_(capacity), device_only_(device_only), what_(what) {
    states_ = 1;
    for (std::size_t i = 0; i < t.item_bytes.size(); ++i) {
      states_ *= 3;
    }
  }

  /// Bytes per iteration; infinity when no step sequence fits.
  [[nodiscard]] double least() const {
    std::vector<std::vector<double>> cycle(states_);
    for (std::uint32_t from = 0; from < states_; ++from) {
      std::vector<double> cost(states_, infinity);
      cost[from] = 0.0;
      for (std::uint32_t s = 0; s < trace_.steps.size(); ++s) {
        cost = advance(cost, s);
      }
      cycle[from] = std::move(cost);
    }
    return least_mean_cycle(cycle);
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  enum copy : std::uint32_t { absent, clean, dirty };

  [[nodiscard]] bool is_here(const trace_step& step) const { return !device_only_ || step.where == place::device; }

  /// The item's access in the step, or none.
  [[nodiscard]] static uses access_of(const trace_step& step, std::size_t item) {
    for (const item_access& a : step.accesses) {
      if (a.item == item) {
        return a.how;
      }
    }
    return uses::none;
  }

  /// Are the item's contents, as they are just before step s, ever needed?
  [[nodiscard]] bool needed_from(std::uint32_t s, std::size_t item) const {
    for (std::uint32_t i = 0; i < trace_.steps.size(); ++i) {
      const uses how = access_of(trace_.steps[(s + i) % trace_.steps.size()], item);
      if (how != uses::none) {
        return needs_contents(how);
      }
    }
    return false;
  }

  /// Cost of getting from `p` to `q` just before step s, given that the contents are needed or not.
  [[nodiscard]] double change(std::uint32_t p, std::uint32_t q, byte_count bytes, bool needed) const {
    const auto size = static_cast<double>(bytes);
    if (p == q || q == absent) {
      const bool written = p == dirty && q == absent && needed;
      return written && what_ == count::writes ? size : 0.0;
    }
    if (!needed || q == dirty) {
      return infinity;  // dead contents can't be brought, and nothing becomes dirty by a transfer
    }
    return (p == absent) == (what_ == count::reads) ? size : 0.0;
  }

  /// What step s makes of a copy `q` that it finds; `fits` says whether the step can run with it.
  [[nodiscard]] std::uint32_t effect(const trace_step& step, std::size_t item, std::uint32_t q, bool& fits) const {
    const uses how = access_of(step, item);
    if (how == uses::none) {
      return q;
    }
    if (!is_here(step)) {
      fits = fits && (q != dirty || !needs_contents(how));
      return modifies(how) || has(how, uses::free) ? absent : q;
    }
    fits = fits && (q != absent || !needs_contents(how));
    if (has(how, uses::free)) {
      return absent;
    }
    return modifies(how) ? dirty : q;
  }

  [[nodiscard]] std::vector<double> advance(const std::vector<double>& cost, std::uint32_t s) const {
    const trace_step& step = trace_.steps[s];
    const std::size_t items = trace_.item_bytes.size();
    std::vector<double> before = cost;  // items change one after the other: the cost of a joint change is the sum
    std::uint32_t place_value = 1;
    for (std::size_t i = 0; i < items; ++i, place_value *= 3) {
      const bool needed = needed_from(s, i);
      std::vector<double> next(states_, infinity);
      for (std::uint32_t state = 0; state < states_; ++state) {
        const std::uint32_t p = state / place_value % 3;
        for (std::uint32_t q = 0; q < 3; ++q) {
          double& best = next[state - p * place_value + q * place_value];
          best = std::min(best, before[state] + change(p, q, trace_.item_bytes[i], needed));
        }
      }
      before = std::move(next);
    }
    std::vector<double> after(states_, infinity);
    for (std::uint32_t state = 0; state < states_; ++state) {
      bool fits = true;
      byte_count room = is_here(step) && step.workspace > 0 ? (step.workspace + 4095) / 4096 * 4096 : 0;
      std::uint32_t result = 0;
      std::uint32_t value = 1;
      for (std::size_t i = 0; i < items; ++i, value *= 3) {
        const std::uint32_t q = state / value % 3;
        const bool made = is_here(step) && has(access_of(step, i), uses::create);
        room += q != absent || made ? trace_.item_bytes[i] : 0;
        result += effect(step, i, q, fits) * value;
      }
      if (fits && room <= capacity_) {
        after[result] = std::min(after[result], before[state]);
      }
    }
    return after;
  }

  [[nodiscard]] double least_mean_cycle(const std::vector<std::vector<double>>& cost) const {
    const std::size_t n = states_;
    // walks[k][v]: the cheapest walk of k edges that ends at v, from anywhere
    std::vector<std::vector<double>> walks(n + 1, std::vector<double>(n, infinity));
    walks[0].assign(n, 0.0);
    for (std::size_t k = 1; k <= n; ++k) {
      for (std::size_t u = 0; u < n; ++u) {
        for (std::size_t v = 0; v < n; ++v) {
          walks[k][v] = std::min(walks[k][v], walks[k - 1][u] + cost[u][v]);
        }
      }
    }
    double best = infinity;
    for (std::size_t v = 0; v < n; ++v) {
      double worst = -infinity;
      for (std::size_t k = 0; k < n && walks[n][v] < infinity; ++k) {
        worst = std::max(worst, (walks[n][v] - walks[k][v]) / static_cast<double>(n - k));
      }
      best = worst > -infinity ? std::min(best, worst) : best;
    }
    return best;
  }

  const trace& trace_;
  byte_count capacity_;
  bool device_only_;
  count what_;
  std::uint32_t states_;
};

}  // namespace forebay::plan::test
