#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <forebay/engine/detail/recompute_advisor.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/memory/topology.hpp>

#include "engine/forecast.hpp"
#include "engine/layout.hpp"
#include "engine/planning_state.hpp"
#include "engine/recomputed_order.hpp"
#include "engine/scheduler.hpp"

namespace forebay {
namespace detail {

/// Which recomputations a thread runs at the moment.
struct recompute_runs {
  std::mutex mutex;  ///< taken last, held across nothing
  std::condition_variable ended;
  std::vector<bool> under_way;  ///< by recomputation
};

}  // namespace detail

/// Everything that an engine owns. Members are in order of construction; the scheduler goes first when it ends.
struct engine::impl {
  explicit impl(engine_options o);
  ~impl();
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  // Life
  void pin();
  void unpin() noexcept;
  void start();

  // Tensors and order
  [[nodiscard]] const tensor_spec& spec_of(tensor_id tensor) const;
  void check_tensors(const order& steps) const;
  [[nodiscard]] detail::layout lay_out(const order& steps) { return lay_out(steps, steps); }
  /// Tensors that have no block yet share one when they are accessed alike in `packed_by`.
  [[nodiscard]] detail::layout lay_out(const order& steps, const order& packed_by);
  [[nodiscard]] tier_bytes needs_of(const detail::layout& l) const;
  void check_capacity(const detail::layout& l, const order& steps) const;
  void add_blocks(const std::vector<plan::packed_block>& fresh);
  void materialise(tensor_id tensor);
  [[nodiscard]] detail::step_plan plan_step(const order_step& s, const detail::layout& l, std::uint32_t position) const;
  [[nodiscard]] const detail::step_plan& plan_on_the_spot(std::string_view name, const std::vector<access>& accesses,
                                                          const step_options& options);
  void note_recorded(std::string_view name, const std::vector<access>& accesses, const step_options& step);
  void adopt(order steps, std::vector<recomputation> made_again);
  void take_over(detail::recomputed_order steps, const detail::layout& l);
  [[nodiscard]] byte_count home_padding(byte_count bytes) const;
  [[nodiscard]] byte_count striping_slack() const;

  // Contents
  void copy_in(tensor_id tensor, std::span<const std::byte> contents, byte_count offset);
  void copy_out(tensor_id tensor, std::span<std::byte> contents, byte_count offset);
  void write_to_storage(std::uint32_t block, const detail::in_place_access& access, std::span<const std::byte> contents,
                        byte_count offset);
  void read_from_storage(const detail::in_place_access& access, std::span<std::byte> contents, byte_count offset);
  void copy_on_device(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction);

  // Iterations
  void expect_idle();
  void start_iteration(std::uint64_t number, bool recording);
  iteration_report end_iteration();
  void adopt_recorded();
  void abandon_iteration() noexcept;

  // Recomputation (recompute.cpp)
  [[nodiscard]] detail::recomputed_order with_recomputations(const order& steps, const std::vector<recomputation>& made,
                                                             const std::vector<bool>& chosen) const;
  void check_recomputations(const order& steps, const std::vector<recomputation>& made) const;
  void start_choosing();
  void note_step_seconds();
  [[nodiscard]] double seconds_again(std::uint32_t recomputation, std::uint32_t step) const;
  [[nodiscard]] detail::recompute_question recompute_question(const plan::machine& rates);
  void set_workspaces_aside(detail::recompute_question& q, const plan::machine& rates) const;
  void reconsider_recomputing(const plan::machine& rates);
  void run_with(const std::vector<bool>& chosen);
  [[nodiscard]] bool is_missing(std::uint32_t tensor);
  [[nodiscard]] bool is_needed(std::uint32_t recomputation);
  [[nodiscard]] std::vector<std::uint32_t> needed_for(const detail::step_plan& step);
  void note_contents(const detail::step_plan& step);

  // Planning (planning.cpp)
  void forget_plan(const detail::layout& l);
  void remember_plan();
  [[nodiscard]] detail::plan_key key_of_plan() const;
  [[nodiscard]] detail::planning_problem problem_for(const std::vector<double>& step_seconds,
                                                     const plan::machine& rates) const;
  void keep_planning(const std::vector<double>& step_seconds, const plan::machine& rates);
  void take_plan();
  [[nodiscard]] bool cheap_to_time() const;
  void follow_from_now_on(std::shared_ptr<const detail::placed_schedule> schedule);
  [[nodiscard]] double seconds_as_it_is() const;
  [[nodiscard]] double bound_seconds() const;
  void show_plan() const;
  [[nodiscard]] plan_report analyse() const;

  std::unique_ptr<forebay::device> device;
  engine_options options;
  topology machine;
  host_arena host;
  pin_result pinned;
  ledger device_account;
  ledger host_account;
  std::unique_ptr<page_store> store;
  std::unique_ptr<stream> compute;
  std::unique_ptr<stream> in_place_stream;
  std::unique_ptr<detail::scheduler> sched;

  // Guards what follows, and that layout and blocks agree. Taken before the scheduler's mutex, never held across a wait
  // for data.
  mutable std::recursive_mutex setup_mutex;
  std::uint32_t identity;  // the generation of this engine's tensor ids
  std::deque<tensor_spec> specs;
  std::unordered_map<std::string, std::uint32_t> by_name;
  order current;  // as it was set
  bool has_order = false;
  std::vector<recomputation> again;        // of the order
  detail::recomputed_order running;        // the order with those that are chosen: what the scheduler's steps are
  std::vector<std::uint32_t> given_up_to;  // by tensor: the recomputation that will make it again, or none
  std::vector<double> known_seconds;       // by step of `current`; negative: not measured yet
  std::vector<std::vector<double>> again_seconds;  // by recomputation and its steps; likewise
  detail::recompute_runs runs;
  detail::recompute_advisor advisor;
  detail::forecast outlook;
  detail::forecast::figures expected;
  detail::planning_state planning;
  byte_count home_bytes = 0;                  // that storage was reserved for
  std::deque<detail::step_plan> on_the_spot;  // steps described in this iteration; leases point to them

  bool iterating = false;
  bool recording = false;
  order recorded;
  std::uint64_t number = 0;
  std::uint64_t iterations = 0;  // begun so far
  time_point began;
  detail::scheduler::counters before;
  byte_count read_before = 0;
  byte_count written_before = 0;
  duration waited_before{};
};

}  // namespace forebay
