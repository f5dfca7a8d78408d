#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace forebay::plan::test {

struct ratio_edge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::int64_t cost = 0;
  std::int64_t count = 0;
};

/// Cancels cycles (Lawler 1976; Bellman and Ford): a ratio is the least when cost - ratio x count leaves no cycle
/// negative; each negative one that is found gives a smaller ratio. All in whole numbers.
class ratio_cycles {
 public:
  ratio_cycles(std::size_t nodes, const std::vector<ratio_edge>& edges)
      : edges_(edges), distance_(nodes, 0), by_(nodes, none) {
    cost_ = 1;
    for (const ratio_edge& e : edges) {
      cost_ += e.cost;
    }
  }

  /// Of the total cost to the total count over all cycles that count something; none without such a cycle.
  [[nodiscard]] std::optional<double> least() {
    bool found = false;
    while (improve()) {
      found = true;
    }
    return found ? std::optional<double>(static_cast<double>(cost_) / static_cast<double>(count_)) : std::nullopt;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  /// Finds a cycle that is better than the ratio so far, and takes its ratio.
  bool improve() {
    std::fill(distance_.begin(), distance_.end(), 0);
    std::fill(by_.begin(), by_.end(), none);
    for (std::size_t pass = 1;; ++pass) {
      bool changed = false;
      for (std::uint32_t k = 0; k < edges_.size(); ++k) {
        const ratio_edge& e = edges_[k];
        const std::int64_t d = distance_[e.from] + e.cost * count_ - e.count * cost_;
        if (d < distance_[e.to]) {
          distance_[e.to] = d;
          by_[e.to] = k;
          changed = true;
        }
      }
      if (!changed) {
        return false;
      }
      if (pass % 4 == 0 && take_cycle()) {
        return true;
      }
    }
  }
  /// A cycle of the edges by which nodes were reached is negative.
  bool take_cycle() {
    std::vector<std::uint32_t> seen(by_.size(), none);
    for (std::uint32_t root = 0; root < by_.size(); ++root) {
      std::uint32_t v = root;
      while (seen[v] == none && by_[v] != none) {
        seen[v] = root;
        v = edges_[by_[v]].from;
      }
      if (seen[v] == root && by_[v] != none) {
        std::int64_t cost = 0;
        std::int64_t count = 0;
        std::uint32_t u = v;
        do {
          cost += edges_[by_[u]].cost;
          count += edges_[by_[u]].count;
          u = edges_[by_[u]].from;
        } while (u != v);
        cost_ = cost;
        count_ = count;
        return true;
      }
    }
    return false;
  }

  const std::vector<ratio_edge>& edges_;
  std::vector<std::int64_t> distance_;
  std::vector<std::uint32_t> by_;  // the edge by which a node was reached
  std::int64_t cost_ = 1;          // the ratio so far
  std::int64_t count_ = 1;
};

[[nodiscard]] inline std::optional<double> least_ratio_cycle(std::size_t nodes, const std::vector<ratio_edge>& edges) {
  return ratio_cycles(nodes, edges).least();
}

}  // namespace forebay::plan::test
