#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include <forebay/plan/next_use.hpp>
#include <forebay/plan/simulate.hpp>

#include "plan/detail/simulator_links.hpp"

namespace forebay::plan::detail {

/// The engine's policy over a clock that jumps from event to event. See simulate.hpp for the model.
class simulator {
 public:
  simulator(const trace& t, const machine& m, const simulation_options& options);

  /// Runs all iterations; the results are `complete` unless nothing can move any more.
  [[nodiscard]] std::vector<simulation> run();

 private:
  static constexpr std::size_t device = 0;
  static constexpr std::size_t host = 1;
  static constexpr item_index nobody = std::numeric_limits<item_index>::max();

  enum class state : std::uint8_t { absent, placing, placed, arriving, present };
  enum class placed : std::uint8_t { no, pending, yes };
  enum class why : std::uint8_t { request, prefetch, spill };
  struct copy {
    state now = state::absent;
    std::uint32_t pins = 0;  // steps that were given it and have not ended
    bool wanted = false;     // by the step that waits
    item_index victim_of = nobody;
    std::int64_t missing = 0;  // (placing) bytes that victims have yet to leave
    [[nodiscard]] bool has_memory() const { return now >= state::placed; }
    [[nodiscard]] bool coming() const { return now >= state::arriving; }
  };
  struct item {
    std::array<copy, 2> copies;
    bool stored = false;
    bool defined = false;
    bool moving = false;
    std::uint32_t writers = 0;  // steps that were given it to modify and have not ended
  };
  struct event {
    double time;
    std::uint64_t sequence;
    bool is_step;
    std::uint32_t step;
    simulated_move move;
    friend bool operator>(const event& a, const event& b) {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };

  [[nodiscard]] static std::size_t tier_of(const trace_step& step) {
    return step.where == place::device ? device : host;
  }
  [[nodiscard]] item_index scratch(std::size_t tier) const {
    return static_cast<item_index>(trace_.item_bytes.size() + tier);
  }
  [[nodiscard]] bool joins(std::uint32_t step) const;
  [[nodiscard]] bool idle() const { return queue_.empty() && running_ == 0; }

  // simulator.cpp: the clock, the caller and the engines
  bool pump();
  bool advance_caller();
  bool start_device_step();
  void handle(const event& e);
  void begin_step(std::uint32_t step);
  void end_step(std::uint32_t step);
  void end_iteration();
  [[nodiscard]] bool can_grant(const trace_step& step) const;
  void grant(std::uint32_t step);
  void serve(const trace_step& step);
  void serve_scratch(const trace_step& step, std::size_t tier);
  [[nodiscard]] bool must_wait_for_steps(const trace_step& step) const;
  void ask(const trace_step& step);
  void set_wanted(const trace_step& step, bool wanted);

  // simulator_memory.cpp: room, victims and moves
  placed place_item(item_index i, std::size_t tier, why reason, std::uint32_t distance);
  [[nodiscard]] std::optional<std::vector<item_index>> victims_for(item_index i, std::size_t tier, why reason,
                                                                   std::uint32_t distance) const;
  [[nodiscard]] bool can_evict(item_index i, std::size_t tier) const;
  [[nodiscard]] std::uint64_t next_use_of(item_index i) const;
  void touch(item_index i);
  void note_next_use(item_index i);
  [[nodiscard]] bool can_drop(item_index i, std::size_t tier) const;
  void evict(item_index i, std::size_t tier, std::uint64_t priority);
  void drop(item_index i, std::size_t tier);
  void credit(item_index claimant, std::size_t tier, byte_count bytes);
  void cancel_claim(item_index claimant, std::size_t tier);
  void spill(item_index i, std::size_t tier, std::uint64_t priority);
  void fetch(item_index i, std::size_t tier, std::uint64_t priority, bool keep_host);
  void launch(simulated_move move);
  void end_move(const simulated_move& move);
  void drop_if_dead(item_index i);

  // simulator_prefetch.cpp: the look-ahead
  void prefetch();
  bool prefetch_item(const item_access& a, std::size_t tier, std::uint32_t distance);

  const trace& trace_;
  simulation_options options_;
  bool two_tiers_;
  next_use next_use_;
  simulated_links links_;
  std::vector<byte_count> bytes_;  // by item; then the two scratches
  std::vector<item> items_;
  // What could be evicted from a tier, by the step, of all iterations, that uses it next; scratches are not among it.
  std::array<std::set<std::pair<std::uint64_t, item_index>>, 2> by_next_use_;
  std::vector<std::uint64_t> next_use_at_;
  std::array<byte_count, 2> capacity_{};
  std::array<byte_count, 2> free_{};

  double now_ = 0.0;
  std::uint64_t sequence_ = 0;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  bool changed_ = true;

  std::uint32_t cursor_ = 0;     // the next step to acquire
  std::uint64_t granted_ = 0;    // steps before it, of all iterations
  std::uint32_t iteration_ = 0;  // that the caller is in
  std::uint32_t ended_ = 0;      // steps that have ended, of all iterations
  bool asked_ = false;           // the step at the cursor has been asked for
  bool host_busy_ = false;
  struct granted_step {
    std::uint32_t step;
    double asked;
  };
  std::deque<granted_step> queue_;  // device steps that were given their items and have not started
  std::uint32_t running_ = 0;       // steps that run
  bool device_busy_ = false;
  double device_free_ = 0.0;  // since when, if it is
  double turn_ = 0.0;         // since when the step at the cursor could have started, but for its items
  std::vector<std::uint32_t> stamp_;
  std::uint32_t walk_ = 0;

  double iteration_start_ = 0.0;
  std::vector<simulation> results_;
  simulation current_;
};

}  // namespace forebay::plan::detail
