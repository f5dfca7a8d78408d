#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include <forebay/plan/evaluate.hpp>

namespace forebay::plan::detail {

/// The memory of a tier as its queue of grants sees it: releases are known by time, grants come in the order asked.
class granted_memory {
 public:
  explicit granted_memory(byte_count capacity) : free_(capacity) {}

  void release(byte_count bytes, double at) { releases_.push({at, bytes}); }
  /// When so many bytes are granted, not before `earliest` grants; nothing when all releases so far don't suffice.
  [[nodiscard]] std::optional<double> grant(byte_count bytes);

 private:
  struct release_at {
    double time;
    byte_count bytes;
    friend bool operator>(const release_at& a, const release_at& b) { return a.time > b.time; }
  };

  byte_count free_;  // as of the last grant
  double last_ = 0.0;
  std::priority_queue<release_at, std::vector<release_at>, std::greater<>> releases_;
};

/// Runs a schedule's operations iteration by iteration, in time that never goes back.
class timed_replay {
 public:
  timed_replay(const trace& t, const machine& m, const schedule& s, const execution_model& model);

  /// One more iteration; false when an operation cannot run.
  [[nodiscard]] bool run_iteration();

  [[nodiscard]] const std::vector<operation_times>& times() const noexcept { return times_; }
  [[nodiscard]] double end() const noexcept { return end_; }
  [[nodiscard]] const std::string& obstacle() const noexcept { return obstacle_; }

 private:
  static constexpr std::size_t tiers = 3;

  struct copy_state {
    bool present = false;
    double began = 0.0;       // when it began to arrive
    double valid = 0.0;       // from when it can be read
    double read_until = 0.0;  // by steps and transfers
  };
  struct item_state {
    std::array<copy_state, tiers> in{};
    std::uint32_t path = 0;       // of the copy in storage
    double steps_until = 0.0;     // all that accessed it
    double modified_until = 0.0;  // all that changed it
    double moved_until = 0.0;     // all transfers of it
  };

  bool run(const operation& op, operation_times& when);
  bool run_step(std::uint32_t index, operation_times& when);
  bool run_transfer(const operation& op, operation_times& when);
  bool run_drop(const operation& op, operation_times& when);
  [[nodiscard]] bool step_may_start(const trace_step& step, std::uint32_t index, byte_count& needed, double& start);
  [[nodiscard]] double granted_at(const trace_step& step, double memory) const;
  void end_step(const trace_step& step, const operation_times& when);
  void release(item_index item, std::size_t tier, double at);
  bool stop(std::string why);
  [[nodiscard]] std::string name(item_index item) const;

  const trace& trace_;
  const machine& machine_;
  const schedule& schedule_;
  bool single_caller_;
  std::vector<bool> joins_;  // by step: it starts when all before it have ended
  std::vector<item_state> items_;
  std::array<granted_memory, 2> memory_;
  std::array<double, 2> steps_until_{};  // device, host
  double caller_until_ = 0.0;            // a single caller's: its last host step has ended, or device step been granted
  std::array<double, 2> device_links_until_{};      // h2d, d2h
  std::vector<std::array<double, 2>> paths_until_;  // read, write; of a half-duplex path only the first counts
  std::vector<operation_times> times_;
  double end_ = 0.0;
  std::string obstacle_;
};

}  // namespace forebay::plan::detail
