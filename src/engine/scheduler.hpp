#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <forebay/base/gate.hpp>
#include <forebay/engine/options.hpp>
#include <forebay/engine/report.hpp>
#include <forebay/memory/host_arena.hpp>
#include <forebay/memory/ledger.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/next_use.hpp>
#include <forebay/residency/block_table.hpp>
#include <forebay/residency/tier_arena.hpp>
#include <forebay/transfer/mover.hpp>
#include <forebay/transfer/staging.hpp>

#include "engine/follow.hpp"
#include "engine/link_rate.hpp"
#include "engine/step_clock.hpp"

namespace forebay::detail {

struct block_access {
  std::uint32_t block = no_block;
  uses how = uses::none;
};

/// A step resolved to blocks: what an acquire works with.
struct step_plan {
  std::string name;
  place where = place::device;
  byte_count workspace = 0;
  std::vector<access> tensors;
  std::vector<block_access> blocks;
  std::optional<std::uint32_t> position;  ///< in the order; none for steps described on the spot
};

/// A lease from grant to the moment its stream has passed its end.
struct lease_record {
  enum class state : std::uint8_t { free, live, ended };
  state now = state::free;
  std::uint32_t generation = 0;
  const step_plan* step = nullptr;
  stream* on = nullptr;
  std::thread::id thread;
  std::uint32_t scratch = no_block;  ///< the pseudo block that holds its workspace
  stream_point end = 0;
  bool announced = false;  ///< the stream will wake the scheduler when it has passed the end
  std::string awaited;     ///< with a timeline: the last copy that the stream waits for before its work
  time_point granted;
};

/// An acquire that waits for its blocks.
struct request {
  const step_plan* step = nullptr;
  stream* on = nullptr;
  std::thread::id thread;
  std::optional<std::uint32_t> lease;  ///< set when granted
  std::uint32_t scratch = no_block;    ///< the workspace that is kept for it
  bool unplaced = false;               ///< the last pass found no memory for one of its blocks
  bool regrouped = false;              ///< everything unheld was moved out once, to close the gaps between blocks
  bool closing_gaps = false;           ///< that is under way
  bool wants = false;                  ///< its blocks' copies are marked to stay
  std::string awaited;                 ///< with a timeline: what the last pass found missing
  std::exception_ptr failure;
  [[nodiscard]] bool done() const { return lease.has_value() || failure != nullptr; }
};

/// A block's move and what follows from its end.
struct block_move : move {
  bool drop_source = false;  ///< an eviction: the source's memory is wanted
  bool keeps_host = false;   ///< storage_to_device that fills the block's host copy on the way
  bool write_back = false;   ///< host_to_storage that leaves the host's copy where it is
  bool overwritten = false;  ///< a step on the device took the contents over before the move's end was known
};

/// What the calling thread needs to work on a block outside of steps.
struct in_place_access {
  enum class source : std::uint8_t { device, host, storage, zero, nothing };
  source where = source::nothing;
  std::byte* memory = nullptr;   ///< of the copy (device or host)
  std::byte* staging = nullptr;  ///< one chunk, with storage
  page_id page;
};

/// The residency table and the one thread that moves blocks.
///
/// `mutex()` guards every field of every record. The scheduler's thread alone starts and ends moves; calling threads,
/// under the same mutex, only pin what is there, take free memory, and leave requests. The order of locks is: this
/// mutex, then the mover's inbox, then `wake_mutex_`; I/O and stream threads take only the last two.
class scheduler {
 public:
  struct parts {
    forebay::device* on = nullptr;
    page_store* store = nullptr;  ///< null: the host tier is every block's home
    std::span<std::byte> host;
    ledger* device_account = nullptr;
    ledger* host_account = nullptr;
    byte_count granularity = 4_KiB;
    byte_count chunk = 1_MiB;
    bool prefetch = true;
    bool poison = false;
    std::chrono::milliseconds stall_limit{0};
    telemetry::timeline* timeline = nullptr;
  };

  explicit scheduler(const parts& p);
  ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  // The table. The caller holds the mutex.
  std::uint32_t add_block(block_record block);
  [[nodiscard]] std::uint32_t block_count() const { return static_cast<std::uint32_t>(blocks_.size()); }
  [[nodiscard]] block_record& block(std::uint32_t index) { return blocks_[index]; }
  tensor_record& add_tensor();
  [[nodiscard]] tensor_record& tensor(std::uint32_t index) { return tensors_[index]; }
  void add_staging(std::size_t chunks);
  [[nodiscard]] std::size_t staging_chunks() const { return staging_.size(); }
  void set_order(std::vector<step_plan> steps, plan::next_use next);
  [[nodiscard]] const step_plan& step(std::uint32_t position) const { return steps_.at(position); }
  [[nodiscard]] byte_count tier_capacity(place where) const;
  void mark_initialised(std::uint32_t tensor);
  void mark_freed(std::uint32_t tensor);

  // The schedule. `set_schedule`: the caller holds the mutex; null for none.
  void set_schedule(std::shared_ptr<const placed_schedule> plan, byte_count device_workspace,
                    byte_count host_workspace);
  [[nodiscard]] const placed_schedule* current_schedule() const { return follow_.plan.get(); }
  [[nodiscard]] bool following() const { return follow_.active; }
  /// Between iterations: the last one followed it from its first step to its last.
  [[nodiscard]] bool following_whole_iterations() const;
  /// Between iterations, when no lease lives: from here on the schedule is followed, if there is one and it is not
  /// followed already. Takes the mutex; waits for moves under way.
  void start_following();

  // Leases. These take the mutex.
  [[nodiscard]] std::uint32_t acquire(const step_plan& step, stream* on);
  void release(std::uint32_t lease) noexcept;
  [[nodiscard]] std::span<std::byte> lease_bytes(std::uint32_t lease, std::uint32_t generation, tensor_id tensor) const;
  [[nodiscard]] std::span<std::byte> lease_workspace(std::uint32_t lease, std::uint32_t generation) const;
  [[nodiscard]] std::uint32_t lease_generation(std::uint32_t lease) const;
  [[nodiscard]] bool has_live_leases() const;
  /// Waits until every ended lease's stream has passed it. \throws a stream's failure.
  void join();
  void drop_activations();

  // Contents outside of steps. These take the mutex; the caller works on the block between begin and end.
  [[nodiscard]] in_place_access begin_in_place(std::uint32_t block, bool writes);
  void end_in_place(std::uint32_t block, const in_place_access& access, bool wrote);
  [[nodiscard]] bool zero_block(std::uint32_t block, std::uint32_t tensor);

  void fail(std::exception_ptr failure);
  void throw_if_failed();

  struct counters {
    std::uint64_t misses = 0;
    duration stall{};
    byte_count h2d = 0;
    byte_count d2h = 0;
  };
  [[nodiscard]] counters totals();

  /// While on, steps are timed even when nobody has to wake for their ends.
  void measure_steps(bool on);
  [[nodiscard]] std::vector<double> step_seconds() const { return clock_.seconds(); }
  /// By step of the order, of which this is known already; negative: it is not.
  void restore_step_seconds(std::vector<double> seconds) { clock_.restore(std::move(seconds)); }
  /// The links' rates as measured lately, and the capacities that blocks can have. Called once an iteration: what was
  /// carried since the last call counts most.
  [[nodiscard]] plan::machine measure_machine();
  /// As measured by the last call of that.
  [[nodiscard]] plan::machine known_machine() const;
  /// Takes the durations and rates known by now into account when looking ahead.
  void use_measurements(const std::vector<double>& step_seconds, const plan::machine& rates);

 private:
  enum class placed : std::uint8_t { yes, pending, no };
  /// Who asks for memory: a request (any unheld victim), a prefetch (victims used later than `distance`), or a spill
  /// (likewise, and only victims that can go at once).
  struct need {
    enum class kind : std::uint8_t { request, prefetch, spill };
    kind what = kind::request;
    std::uint32_t distance = 0;
  };

  // scheduler.cpp: the thread
  void run();
  void pass();
  void kick() noexcept;
  void kick_unless_quiet() noexcept {
    if (!quiet_) {
      kick();
    }
  }
  void latch(const std::exception_ptr& failure);

  // placement.cpp: memory for blocks
  [[nodiscard]] tier_arena& arena(tier t) { return t == tier::device ? device_arena_ : host_arena_; }
  [[nodiscard]] replica& copy_of(block_record& b, tier t) { return t == tier::device ? b.device : b.host; }
  [[nodiscard]] std::byte* address(tier t, extent place) const;
  [[nodiscard]] bool take_hole(std::uint32_t block, tier t);
  [[nodiscard]] std::optional<extent> take_kept_workspace(std::uint32_t block, tier t);
  [[nodiscard]] placed place_block(std::uint32_t block, tier t, need why);
  [[nodiscard]] std::optional<std::uint64_t> victim_score(tier t, byte_count offset, const occupant& who, need why);
  [[nodiscard]] bool can_drop_at_once(const block_record& b, tier t) const;
  void evict(std::uint32_t block, tier t, std::uint64_t priority);
  /// Evicts without waiting for anything else to move first.
  void evict_now(std::uint32_t block, tier t);
  void drop_copy(std::uint32_t block, tier t);
  void settle_if_complete(std::uint32_t block, tier t);
  void cancel_claim(std::uint32_t block, tier t);
  void cancel_unwanted_claims(tier t);
  void poison(tier t, extent place);

  // moves.cpp: transfers of blocks
  void start_fetch(std::uint32_t block, tier t, std::uint64_t priority, bool keep_host);
  void start_spill(std::uint32_t block, tier from, std::uint64_t priority);
  void spill_to_storage(std::uint32_t block, tier from, std::uint64_t priority);
  void start_write_back(std::uint32_t block, std::uint64_t priority);
  void resume_spills();
  [[nodiscard]] bool take_home(std::uint32_t block);
  void launch(block_move m);
  void end_move(block_move& m);
  void end_fetch(block_record& b, const block_move& m);
  void end_spill(block_record& b, const block_move& m);
  void drop_if_dead(std::uint32_t block);
  void ensure_page(block_record& b);
  void take_page_for_rewrite(block_record& b);
  void hasten(std::uint32_t block);

  // grants.cpp and leases.cpp
  void check_contents(const step_plan& step) const;
  void check_fits(const step_plan& step) const;
  [[nodiscard]] std::optional<std::uint32_t> try_grant(const step_plan& step, stream* on, std::thread::id thread);
  void check_conflicts(const step_plan& step, const stream* on) const;
  [[nodiscard]] const lease_record* conflict(const step_plan& step, const block_access& a, const stream* on,
                                             std::thread::id thread) const;
  [[nodiscard]] bool ready(const step_plan& step, const block_access& a, const stream* on, std::thread::id thread);
  [[nodiscard]] stream_point end_point(lease_record& l) noexcept;
  [[nodiscard]] bool others_idle(const block_record& b, tier t) const;
  [[nodiscard]] bool used_elsewhere_next(const step_plan& step, std::uint32_t block) const;
  void take_over(const step_plan& step, const block_access& a);
  void order_after(block_record& b, bool modifies, stream& on);
  void note_use(block_record& b, bool modifies, const stream& on, stream_point end);
  [[nodiscard]] std::uint32_t scratch_for(const step_plan& step, const stream* on);
  void note_awaited(lease_record& l) const;
  [[nodiscard]] std::uint32_t new_lease(const step_plan& step, stream* on, std::thread::id thread);
  void wake_when_passed(lease_record& l) noexcept;
  void passed(const std::string& step, const std::string& awaited, std::optional<std::uint32_t> position,
              const stream& on, time_point granted) noexcept;
  void reap();
  void unpin(lease_record& l);

  // follow.cpp
  void prepare_start();
  [[nodiscard]] byte_count room_for_blocks(tier t);
  [[nodiscard]] bool lies_well(tier t, const replica& r, byte_count planned);
  void bring_again(std::uint32_t block, tier t, byte_count offset);
  void stop_following();
  void follow();
  void take_next_operation();
  void close_gaps();
  [[nodiscard]] std::optional<std::pair<std::uint32_t, tier>> memory_wanted_by(const planned_entry& e);
  void advance(planned_entry& e, std::array<bool, 2>& full);
  void advance_step(planned_entry& e, std::array<bool, 2>& full);
  void advance_bring(planned_entry& e, std::array<bool, 2>& full);
  void advance_write_back(planned_entry& e);
  void advance_leave(planned_entry& e);
  [[nodiscard]] block_marks& marks_of(std::uint32_t block);
  void mark(const planned_entry& e);
  [[nodiscard]] std::optional<extent> planned_place_or_hole(const block_record& b, tier t, byte_count offset);
  [[nodiscard]] bool take_planned_place(std::uint32_t block, tier t, byte_count offset);
  [[nodiscard]] bool is_expected(const step_plan& step) const;
  [[nodiscard]] bool may_grant(const step_plan& step) const;
  void note_granted(const step_plan& step);
  void note_passed(const step_plan& step);

  // in_place.cpp
  [[nodiscard]] in_place_access open_in_place(std::uint32_t block, bool writes, std::unique_lock<std::mutex>& lock);

  // requests.cpp: acquires that have to wait
  [[nodiscard]] std::uint32_t wait_for(const step_plan& step, stream* on, std::unique_lock<std::mutex>& lock);
  void want(request& r, bool wanted);
  /// Whether the step's lease needs what the block held before: not when nothing of it is defined.
  [[nodiscard]] static bool brings_contents(const block_record& b, const block_access& a) {
    return needs_contents(a.how) && b.initialised != 0;
  }
  [[nodiscard]] bool is_miss(const step_plan& step);
  [[nodiscard]] bool must_queue(const step_plan& step) const;
  void serve_requests();
  [[nodiscard]] const request* ahead_of(const request& r) const;
  [[nodiscard]] bool holds_leases(std::thread::id thread) const;
  void serve_by_schedule(request& r);
  void serve_behind(request& r, const request& first);
  void serve(request& r);
  void serve_block(request& r, const block_access& a);
  void serve_workspace(request& r);
  void regroup(request& r);
  void fail_if_stuck();
  [[nodiscard]] std::string picture() const;
  [[nodiscard]] std::string missing_for(const request& r);
  [[nodiscard]] std::string missing_block(const step_plan& step, const block_record& b) const;

  // prefetch.cpp
  /// One tier's window of a walk.
  struct look_ahead {
    bool open = true;
    byte_count capacity = 0;
    byte_count lead = 0;
    byte_count distinct = 0;        ///< bytes of the blocks met so far
    byte_count scratch = 0;         ///< largest workspace so far
    byte_count missing = 0;         ///< of the distinct ones, what was not there
    byte_count released = 0;        ///< what the steps so far will leave behind
    std::uint32_t best_victim = 0;  ///< distance of the furthest used block that could go now
    double missing_seconds = 0.0;   ///< of bringing what is missing, and taking as much away

    /// Counts a block in. False: it is not due yet, or no longer fits in the window. `seconds_to_bring`: none when it
    /// is there.
    [[nodiscard]] bool admits(byte_count bytes, std::optional<double> seconds_to_bring, double seconds_left);
    [[nodiscard]] bool may_evict() const { return missing <= lead || missing > released; }
  };
  void prefetch();
  void move_cursor(std::uint32_t position);
  [[nodiscard]] std::optional<double> seconds_to_bring(const block_access& a, tier t) const;
  [[nodiscard]] look_ahead open_window(tier t, byte_count lead_divisor);
  void note_releases(const step_plan& step, std::uint32_t distance, look_ahead& device, look_ahead& host) const;
  [[nodiscard]] placed place_ahead(std::uint32_t block, tier t, std::uint32_t distance, bool may_evict);
  [[nodiscard]] bool prefetch_device(const block_access& a, std::uint32_t distance, bool may_evict);
  [[nodiscard]] bool prefetch_host(const block_access& a, std::uint32_t distance, bool may_evict);

  forebay::device& device_;
  page_store* store_;
  std::span<std::byte> host_memory_;
  byte_count chunk_;
  bool prefetch_enabled_;
  bool poison_;
  std::chrono::milliseconds stall_limit_;
  telemetry::timeline* timeline_;
  telemetry::lane_id compute_lane_ = 0;
  telemetry::lane_id stall_lane_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // requests granted, moves ended, leases reaped
  tier_arena device_arena_;
  tier_arena host_arena_;
  staging_pool staging_;
  std::deque<block_record> blocks_;
  std::deque<tensor_record> tensors_;
  std::vector<step_plan> steps_;
  plan::next_use next_use_;
  std::uint32_t cursor_ = 0;        // the step expected next
  std::uint32_t device_rests_ = 0;  // steps from the cursor to the next one on the device
  std::deque<lease_record> leases_;
  std::uint32_t live_leases_ = 0;
  std::vector<std::uint32_t> free_leases_;
  std::vector<std::uint32_t> ended_leases_;  // in order of their ends
  std::vector<std::uint32_t> scratches_;     // pseudo blocks that hold workspaces
  byte_count fixed_host_bytes_ = 0;          // home slots of a run without storage
  std::deque<request*> requests_;
  std::unordered_map<std::uint32_t, block_move> moves_;  // by block
  std::vector<std::uint32_t> waiting_spills_;            // device blocks whose place in the host tier is being cleared
  std::vector<std::uint64_t> stamp_;                     // prefetch walk: block -> last walk that saw it
  std::uint64_t walk_ = 0;
  std::exception_ptr failure_;
  std::uint64_t misses_ = 0;
  duration stall_{};
  // Everything the order needs is in place and nothing moves: nobody has to wake the thread. Written under the mutex;
  // stream callbacks read it without. One that misses a change to false is made up for by the kick of whoever made it.
  std::atomic<bool> quiet_{false};
  bool incomplete_ = false;     // the last walk met a block that can't be brought yet
  bool changed_table_ = false;  // by the current pass
  bool pausing_ = false;        // nothing is brought ahead, so that moves come to an end
  follower follow_;

  std::vector<double> known_seconds_;     // by step; empty while unknown
  double device_seconds_per_byte_ = 0.0;  // of bringing a byte into the tier and taking another one away
  double host_seconds_per_byte_ = 0.0;
  bool measuring_ = false;
  step_clock clock_;
  std::vector<link_rate> rates_;  // h2d, d2h, then each path's reads and writes
  plan::machine known_machine_;
  gate callbacks_;  // stream callbacks that will still call kick()
  std::unique_ptr<mover> mover_;
  std::mutex wake_mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace forebay::detail
