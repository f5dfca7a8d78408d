#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/recompute.hpp>

namespace forebay::detail {

/// Which recomputations are worth it, and what that is judged by.
struct recompute_question {
  plan::trace base;  ///< with none of them
  std::vector<plan::recompute_candidate> candidates;
  plan::machine room;  ///< capacities less what the engine keeps for itself
  plan::execution_model execution;
  double effort = 1.0;  ///< of a plan
  bool planned = true;  ///< off: judged by the engine's look-ahead instead of the planner
};

/// Proposes sets of recomputations, none at first. A thread of its own, which the destructor waits for, finds the set
/// that promises to be fastest; it is tried, and taken back when iterations turn out slower than they were before.
/// Asked again when durations or rates have changed. Not thread-safe.
class recompute_advisor {
 public:
  recompute_advisor() = default;
  ~recompute_advisor();
  recompute_advisor(const recompute_advisor&) = delete;
  recompute_advisor& operator=(const recompute_advisor&) = delete;

  /// Other recomputations, so many, of which none are chosen.
  void reset(std::size_t recomputations);
  /// An iteration with the set chosen so far has taken this long.
  void note(double seconds);
  /// The set to use from now on, when it is another one. `wait`: for the answer, instead of for a later call.
  [[nodiscard]] std::optional<std::vector<bool>> advise(const std::function<recompute_question()>& ask, bool wait);
  [[nodiscard]] const std::vector<bool>& chosen() const noexcept { return chosen_; }
  /// The set that was advised can't be used: the one before it is.
  void refuse();

 private:
  struct answer {
    plan::recompute_choice choice;
    double seconds_as_it_is = 0.0;
  };
  struct trial {
    std::vector<bool> before;
    double seconds = 0.0;
  };

  [[nodiscard]] static answer find(const recompute_question& q, const std::vector<bool>& now,
                                   const std::atomic<bool>& stopped);
  void stop();
  [[nodiscard]] bool is_news(const recompute_question& q) const;
  [[nodiscard]] std::optional<std::vector<bool>> end_trial();
  [[nodiscard]] std::optional<std::vector<bool>> take_answer();
  [[nodiscard]] double least_measured() const;

  std::vector<bool> chosen_;
  std::deque<double> measured_;   ///< the last iterations with this set, without the first
  std::uint32_t iterations_ = 0;  ///< with this set
  std::optional<trial> trial_;
  std::vector<std::vector<bool>> rejected_;
  std::uint32_t patience_ = 0;  ///< iterations between one question and the next
  std::uint32_t since_asked_ = 0;
  double asked_seconds_ = -1.0;  ///< the durations' sum that was asked about last, and the rates; negative: never
  plan::machine asked_rates_;
  std::atomic<bool> stopped_{false};
  std::future<answer> pending_;
};

}  // namespace forebay::detail
