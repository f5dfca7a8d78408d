#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "engine/placed_schedule.hpp"

namespace forebay::detail {

/// What comes of one planning problem.
struct planning_result {
  std::shared_ptr<const placed_schedule> schedule;  ///< null: there is none, or no transfer is needed
  double bound_seconds = 0.0;                       ///< certified, for the same durations, rates and capacities
};

[[nodiscard]] planning_result solve(const planning_problem& problem);

/// Solves one problem at a time, on a thread of its own, which the destructor waits for. Not thread-safe.
class background_planner {
 public:
  [[nodiscard]] bool busy() const { return result_.valid(); }
  void start(planning_problem problem) {
    result_ = std::async(std::launch::async, [p = std::move(problem)] { return solve(p); });
  }
  /// Whether a result can be taken.
  [[nodiscard]] bool ready() const {
    return busy() && result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  [[nodiscard]] planning_result take() { return result_.get(); }

 private:
  std::future<planning_result> result_;
};

}  // namespace forebay::detail
