#include <forebay/plan/stalls.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

constexpr double same = 1e-9;  // of a period: as exactly as an evaluation finds the steady state

class critical_paths {
 public:
  critical_paths(const trace& t, const schedule& s, const evaluation& e)
      : trace_(t), ops_(s.operations), times_(e.times), period_(e.period), tolerance_(same * e.period) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (length(i) > tolerance_) {
        ends_.push_back({in_period(times_[i].finish), i});
      }
    }
    std::sort(ends_.begin(), ends_.end(), [](const end& a, const end& b) { return a.at < b.at; });
  }

  /// What the step waited for, back to `since`.
  [[nodiscard]] std::vector<stall_cause> walk(std::size_t step, double since) const {
    std::vector<stall_cause> path;
    std::size_t waits = step;
    for (double at = times_[step].start; at > since + tolerance_;) {
      const std::optional<std::size_t> cause = ended(at, waits);
      const double start = cause ? std::max(at - length(*cause), since) : since;
      path.push_back({start, at, cause});
      if (!cause) {
        break;
      }
      waits = *cause;
      at = start;
    }
    return path;
  }

 private:
  struct end {
    double at = 0.0;  // in [0, period)
    std::size_t operation = 0;
  };

  [[nodiscard]] double length(std::size_t i) const { return times_[i].finish - times_[i].start; }

  [[nodiscard]] double in_period(double at) const { return at - std::floor(at / period_) * period_; }

  /// Of the operations that end at an instant, the one that `waits` most likely waits for.
  [[nodiscard]] std::optional<std::size_t> ended(double at, std::size_t waits) const {
    std::optional<std::size_t> best;
    int best_rank = 0;
    const auto look = [&](double around) {
      auto it = std::lower_bound(ends_.begin(), ends_.end(), around - tolerance_,
                                 [](const end& e, double value) { return e.at < value; });
      for (; it != ends_.end() && it->at <= around + tolerance_; ++it) {
        const int rank = it->operation == waits ? 0 : relation(it->operation, waits);
        if (rank > best_rank || (rank == best_rank && rank > 0 && length(it->operation) > length(*best))) {
          best = it->operation;
          best_rank = rank;
        }
      }
    };
    const double instant = in_period(at);
    look(instant);
    if (instant < tolerance_) {
      look(instant + period_);
    } else if (instant > period_ - tolerance_) {
      look(instant - period_);
    }
    return best;
  }

  [[nodiscard]] int relation(std::size_t a, std::size_t b) const {
    if (share_an_item(ops_[a], ops_[b])) {
      return 3;
    }
    return same_engine(ops_[a], ops_[b]) ? 2 : 1;
  }

  [[nodiscard]] bool share_an_item(const operation& a, const operation& b) const {
    if (a.what == operation::kind::step) {
      const std::vector<item_access>& all = trace_.steps[a.index].accesses;
      return std::any_of(all.begin(), all.end(), [&](const item_access& x) { return concerns(b, x.item); });
    }
    return concerns(b, a.index);
  }

  [[nodiscard]] bool concerns(const operation& op, item_index item) const {
    if (op.what != operation::kind::step) {
      return op.index == item;
    }
    const std::vector<item_access>& all = trace_.steps[op.index].accesses;
    return std::any_of(all.begin(), all.end(), [&](const item_access& x) { return x.item == item; });
  }

  [[nodiscard]] bool same_engine(const operation& a, const operation& b) const {
    if (a.what != b.what || a.what == operation::kind::drop) {
      return false;
    }
    return a.what == operation::kind::step ? trace_.steps[a.index].where == trace_.steps[b.index].where
                                           : a.over == b.over && a.path == b.path;
  }

  const trace& trace_;
  const std::vector<operation>& ops_;
  const std::vector<operation_times>& times_;
  double period_;
  double tolerance_;
  std::vector<end> ends_;
};

}  // namespace

std::vector<stall> find_stalls(const trace& t, const schedule& s, const evaluation& e, place where) {
  if (!e.complete || e.times.size() != s.operations.size()) {
    throw usage_error(
        fmt::format("an evaluation of {} operations for a schedule of {}", e.times.size(), s.operations.size()));
  }
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < s.operations.size(); ++i) {
    const operation& op = s.operations[i];
    if (op.what == operation::kind::step && t.steps.at(op.index).where == where) {
      steps.push_back(i);
    }
  }
  std::vector<stall> all;
  if (steps.empty() || !(e.period > 0.0)) {
    return all;
  }
  const critical_paths paths(t, s, e);
  double free_from = e.times[steps.back()].finish - e.period;
  for (const std::size_t i : steps) {
    const double start = e.times[i].start;
    if (start > free_from + same * e.period) {
      all.push_back({i, free_from, start, paths.walk(i, free_from)});
    }
    free_from = e.times[i].finish;
  }
  return all;
}

}  // namespace forebay::plan
