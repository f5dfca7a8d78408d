#pragma once

#include <future>
#include <memory>
#include <optional>

#include "engine/placed_schedule.hpp"

namespace forebay::detail {

/// Makes one schedule at a time, on a thread of its own, which the destructor waits for. Not thread-safe.
class background_planner {
 public:
  [[nodiscard]] bool busy() const { return result_.valid(); }
  void start(planning_problem problem) {
    result_ = std::async(std::launch::async, [p = std::move(problem)] { return make_schedule(p); });
  }
  /// Whether a schedule, or the news that there is none, can be taken.
  [[nodiscard]] bool ready() const {
    return busy() && result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  [[nodiscard]] std::optional<placed_schedule> take() { return result_.get(); }

 private:
  std::future<std::optional<placed_schedule>> result_;
};

}  // namespace forebay::detail
