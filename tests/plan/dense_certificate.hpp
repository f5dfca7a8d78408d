#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include <forebay/plan/certificate.hpp>

namespace forebay::plan::test {

/// What check_certificate() computes, without its shortcuts and its rounding down: pairs of steps for the order, every
/// sub-slot and every item by itself, all states, relaxed until nothing changes. For machines without mixes.
class dense_certificate {
 public:
  dense_certificate(const trace& t, const machine& m, const certificate& c, bool whole)
      : t_(t), m_(m), c_(c), whole_(whole), n_(static_cast<int>(c.h2d.size())) {
    bool on_device = false;
    for (const trace_step& s : t.steps) {
      on_device = on_device || s.where == place::device;
    }
    for (int s = 0; s < static_cast<int>(t.steps.size()); ++s) {
      (on_device == (t.steps[at(s)].where == place::device) ? clock_ : floating_).push_back(s);
    }
    own_ = on_device ? 1 : 2;
    other_ = 3 - own_;
    for (std::size_t h = 0; h < floating_.size(); ++h) {
      find_range(h);
    }
    for (int round = 0; round < 3; ++round) {
      order_ranges();
    }
  }

  [[nodiscard]] double value() const {
    double sum = 0.0;
    for (int k = 0; k < n_; ++k) {
      const trace_step& step = t_.steps[at(clock_[at(k / 2)])];
      sum += k % 2 == 0 ? step.seconds * (1.0 - charge(k)) : 0.0;
      sum -= c_.device[at(k)] * static_cast<double>(m_.device_capacity);
      sum -= c_.host[at(k)] * static_cast<double>(m_.host_capacity);
      sum += (own_ == 1 ? c_.device : c_.host)[at(k)] * static_cast<double>(workspace_room(step));
    }
    for (std::size_t h = 0; h < floating_.size(); ++h) {
      double least = infinite;
      for (int k = std::max(first_[h], -2 * n_); k <= std::min(last_[h], 2 * n_); ++k) {
        least = std::min(least, c_.cpu[at((k + 2 * n_) % n_)]);
      }
      sum += t_.steps[at(floating_[h])].seconds * least;
    }
    for (item_index i = 0; i < t_.item_bytes.size(); ++i) {
      sum += static_cast<double>(t_.item_bytes[i]) * item_cost(i);
    }
    return sum;
  }

 private:
  using costs = std::array<double, 8>;
  struct event {
    int first, last;
    uses how;
  };
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  static constexpr int far = 1 << 20;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static bool exclusive(uses how) { return modifies(how) || has(how, uses::free); }

  [[nodiscard]] const uses* access(int step, item_index item) const {
    for (const item_access& a : t_.steps[at(step)].accesses) {
      if (a.item == item) {
        return &a.how;
      }
    }
    return nullptr;
  }
  [[nodiscard]] bool conflict(int a, int b) const {
    for (const item_access& x : t_.steps[at(a)].accesses) {
      const uses* other = access(b, x.item);
      if (other != nullptr && (exclusive(x.how) || exclusive(*other))) {
        return true;
      }
    }
    return false;
  }
  void find_range(std::size_t h) {
    int first = -far;
    int last = far;
    for (int g = 0; g < static_cast<int>(clock_.size()); ++g) {
      for (int lap = -1; lap <= 1 && conflict(clock_[at(g)], floating_[h]); ++lap) {
        const bool before = lap < 0 || (lap == 0 && clock_[at(g)] < floating_[h]);
        first = before ? std::max(first, lap * n_ + 2 * g + 1) : first;
        last = before ? last : std::min(last, lap * n_ + 2 * g - 1);
      }
    }
    first_.push_back(first);
    last_.push_back(last);
  }
  void order_ranges() {
    for (std::size_t a = 0; a < first_.size(); ++a) {
      for (std::size_t b = 0; b < first_.size(); ++b) {
        const int lap = a < b ? 0 : n_;  // a comes before b of this iteration, or of the next
        first_[b] = first_[a] == -far ? first_[b] : std::max(first_[b], first_[a] - lap);
        last_[a] = last_[b] == far ? last_[a] : std::min(last_[a], last_[b] + lap);
      }
    }
  }
  [[nodiscard]] double charge(int k) const {
    double sum = c_.h2d[at(k)] + c_.d2h[at(k)] + c_.cpu[at(k)];
    for (std::size_t p = 0; p < m_.storage.size(); ++p) {
      const double read = c_.storage_read[p][at(k)];
      const double write = c_.storage_write[p][at(k)];
      sum += m_.half_duplex_storage ? std::max(read, write) : read + write;
    }
    return sum;
  }

  [[nodiscard]] double item_cost(item_index item) const {
    std::vector<event> events;
    bool accessed = false;
    for (std::size_t h = 0; h < floating_.size(); ++h) {
      const uses* how = access(floating_[h], item);
      if (how != nullptr && first_[h] > -far) {
        events.push_back({first_[h], last_[h], *how});
      }
    }
    for (const int s : clock_) {
      accessed = accessed || access(s, item) != nullptr;
    }
    if (!accessed && events.empty()) {
      return 0.0;
    }
    double best = infinite;
    const int q = static_cast<int>(events.size());
    for (int done = -3 * q; done <= 3 * q; ++done) {
      const bool possible = q == 0 || (unrolled(events, done - 1).first < 0 && unrolled(events, done).last >= 0);
      for (std::size_t set = 0; set < 8 && possible; ++set) {
        best = std::min(best, closed_path(item, events, done, set));
      }
    }
    return best < infinite ? best : 0.0;
  }
  [[nodiscard]] event unrolled(const std::vector<event>& events, int i) const {
    const int q = static_cast<int>(events.size());
    const int lap = (i + 8 * q) / q - 8;
    event e = events[at(i - lap * q)];
    e.first += lap * n_;
    e.last += lap * n_;
    return e;
  }

  [[nodiscard]] double closed_path(item_index item, const std::vector<event>& events, int done, std::size_t set) const {
    const int q = static_cast<int>(events.size());
    std::map<int, costs> cost;
    for (int u = done; u <= done + q; ++u) {
      cost[u].fill(infinite);
    }
    cost[done][set] = 0.0;
    for (int k = 0; k < n_; ++k) {
      const uses* how = access(clock_[at(k / 2)], item);
      for (auto& [u, c] : cost) {
        enter(k, how, how == nullptr && k % 2 == 0 && is_shut(k / 2, item), c);
      }
      while (advance(k, item, how, events, cost)) {
      }
      for (auto& [u, c] : cost) {
        if (q > 0 && u < done + q && unrolled(events, u).last <= k) {
          c.fill(infinite);
        }
      }
    }
    return cost[done + q][set];
  }
  void enter(int k, const uses* how, bool shut, costs& c) const {
    if (how != nullptr && k % 2 == 0) {
      use(*how, own_, c);
    }
    for (int set = 0; set < 8; ++set) {
      const bool gone = (set & own_) == 0 && how != nullptr && k % 2 == 1;
      c[at(set)] = gone || (shut && (set & own_) != 0) ? infinite : c[at(set)];
      c[at(set)] += ((set & 1) != 0 ? c_.device[at(k)] : 0.0) + ((set & 2) != 0 ? c_.host[at(k)] : 0.0);
    }
    if (how != nullptr && k % 2 == 1 && has(*how, uses::free)) {
      std::swap(c[0], c[at(own_)]);
    }
  }
  static void use(uses how, int tier, costs& c) {
    double least = infinite;
    for (int set = 0; set < 8; ++set) {
      const bool can = (set & tier) != 0 || !needs_contents(how);
      c[at(set)] = can ? c[at(set)] : infinite;
      least = std::min(least, c[at(set)]);
    }
    if (exclusive(how)) {
      c.fill(infinite);
      c[at(tier)] = least;
    }
  }

  /// One step of whatever may happen in the sub-slot. \returns whether something became cheaper.
  [[nodiscard]] bool advance(int k, item_index item, const uses* how, const std::vector<event>& events,
                             std::map<int, costs>& cost) const {
    const bool running = k % 2 == 0 && how != nullptr;
    const bool shut = k % 2 == 0 && how == nullptr && is_shut(k / 2, item);
    if (running && exclusive(*how)) {
      return false;
    }
    const std::map<int, costs> before = cost;
    for (auto& [u, c] : cost) {
      for (int set = 0; set < 8; ++set) {
        for (const int tier : {1, 2, 4}) {
          if ((set & tier) != 0) {
            double& without = c[at(set & ~tier)];
            without = std::min(without, c[at(set)]);
          } else {
            c[at(set | tier)] = std::min(c[at(set | tier)], c[at(set)] + copy_price(k, set, tier));
          }
        }
      }
      for (int set = 0; set < 8; ++set) {
        c[at(set)] = shut && (set & own_) != 0 ? infinite : c[at(set)];
      }
      const auto next = cost.find(u + 1);
      if (next == cost.end()) {
        continue;
      }
      const event e = unrolled(events, u);
      costs after = c;
      use(e.how, other_, after);
      if (has(e.how, uses::free)) {
        std::swap(after[0], after[at(other_)]);
      }
      for (std::size_t set = 0; set < 8 && e.first <= k && k <= e.last; ++set) {
        next->second[set] = std::min(next->second[set], after[set]);
      }
    }
    return cost != before;
  }
  [[nodiscard]] double copy_price(int k, int set, int tier) const {
    double least = infinite;
    if (tier == 1) {
      least = (set & 2) != 0 ? c_.h2d[at(k)] / m_.h2d_rate : infinite;
    } else if (tier == 2 && (set & 1) != 0) {
      least = c_.d2h[at(k)] / m_.d2h_rate;
    }
    for (std::size_t p = 0; p < m_.storage.size() && tier > 1; ++p) {
      if (tier == 2 && (set & 4) != 0) {
        least = std::min(least, c_.storage_read[p][at(k)] / m_.storage[p].read_rate);
      } else if (tier == 4 && (set & 2) != 0) {
        least = std::min(least, c_.storage_write[p][at(k)] / m_.storage[p].write_rate);
      }
    }
    return least;
  }
  [[nodiscard]] bool is_shut(int g, item_index item) const {
    const trace_step& step = t_.steps[at(clock_[at(g)])];
    byte_count needed = t_.item_bytes[item] + workspace_room(step);
    for (const item_access& a : step.accesses) {
      needed += t_.item_bytes[a.item];
    }
    return whole_ && needed > (own_ == 1 ? m_.device_capacity : m_.host_capacity);
  }

  const trace& t_;
  const machine& m_;
  const certificate& c_;
  bool whole_;
  int n_;
  int own_ = 1;
  int other_ = 2;
  std::vector<int> clock_;
  std::vector<int> floating_;
  std::vector<int> first_;
  std::vector<int> last_;
};

}  // namespace forebay::plan::test
