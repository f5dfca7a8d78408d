#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/function.hpp>
#include <forebay/device/device.hpp>
#include <forebay/memory/extent_allocator.hpp>
#include <forebay/store/page_store.hpp>
#include <forebay/telemetry/timeline.hpp>
#include <forebay/transfer/staging.hpp>

namespace forebay {

/// The ways a block can go. Between storage and device its chunks pass through host memory: the block's own host copy
/// when it is to keep one, staging chunks otherwise; the legs of different chunks overlap.
enum class route : std::uint8_t {
  storage_to_host,
  host_to_storage,
  host_to_device,
  device_to_host,
  storage_to_device,
  device_to_storage
};
[[nodiscard]] std::string_view to_string(route r);

/// One block on its way. Owned by the caller, who keeps it and all memory it names until `mover::advance` returns it.
struct move {
  route way = route::host_to_device;
  std::uint32_t block = 0;  ///< the caller's name for it
  std::string_view name;    ///< in the timeline; outlives the move
  std::byte* device = nullptr;
  std::byte* host = nullptr;  ///< null on routes between storage and device: staging is used
  page_id page;
  byte_count bytes = 0;        ///< a multiple of the store's alignment
  std::uint64_t priority = 0;  ///< smaller goes first
  /// Set with the last host-to-device copy enqueued: who waits for this point of the copy stream sees the whole block.
  stream_point enqueued_at = 0;
  std::exception_ptr failure;  ///< of the first chunk that failed; the others are drained

  // The mover's own.
  std::uint64_t sequence = 0;
  std::uint64_t pieces = 0;
  std::uint64_t issued = 0;
  std::uint64_t copied = 0;  ///< second legs enqueued (storage_to_device)
  std::uint64_t in_flight = 0;
};

struct mover_options {
  byte_count copy_piece = 4_MiB;  ///< of copies between host and device memory
  unsigned copies_in_flight = 2;  ///< per direction: a demand fetch waits for no more than these
  /// In flight per storage path and direction: enough for the store to merge neighbours and to keep the drive busy;
  /// what is in flight can't be overtaken in the mover any more, only in the store. A move of priority 0 is not held up
  /// by it.
  byte_count bytes_per_path = 16_MiB;
};

/// One direction of one link: its load now, and what it has carried. Its rate is bytes over the time it was in use.
struct link_use {
  unsigned in_flight = 0;
  byte_count bytes_in_flight = 0;
  byte_count bytes = 0;
  duration busy{};
  time_point busy_since;

  [[nodiscard]] byte_count carried() const { return bytes - bytes_in_flight; }
  /// How long it has been in use by `now`.
  [[nodiscard]] duration busy_by(time_point now) const {
    return in_flight == 0 ? busy : busy + std::max(now - busy_since, duration::zero());
  }
  void begin(byte_count n, time_point now) {
    if (in_flight++ == 0) {
      busy_since = std::max(now, busy_since);
    }
    bytes += n;
    bytes_in_flight += n;
  }
  void end(byte_count n, time_point now) {
    bytes_in_flight -= n;
    if (--in_flight == 0) {
      busy += std::max(now, busy_since) - busy_since;
      busy_since = now;
    }
  }
};

/// Carries blocks along their routes, chunk by chunk, best priority first. All calls come from one thread (the
/// scheduler); completions arrive on others, are queued, and take effect in `advance`.
class mover {
 public:
  /// `wake` is called on any thread when `advance` has something to do; it must be short and not throw.
  mover(device& on, page_store* store, staging_pool& staging, const mover_options& options,
        unique_function<void()> wake, telemetry::timeline* timeline);
  /// Waits until nothing is in flight.
  ~mover();
  mover(const mover&) = delete;
  mover& operator=(const mover&) = delete;

  void start(move& m);
  /// Raises the urgency of a move under way.
  void hasten(move& m, std::uint64_t priority);
  /// Takes completions into account, issues what the links have room for, and appends the moves that have ended.
  void advance(std::vector<move*>& ended);
  [[nodiscard]] bool idle() const noexcept { return active_.empty(); }
  /// Blocks until a completion has arrived (or one is there already).
  void wait_for_completion();

  [[nodiscard]] const stream& h2d_stream() const noexcept { return *h2d_; }
  [[nodiscard]] stream& h2d_stream() noexcept { return *h2d_; }
  [[nodiscard]] stream& d2h_stream() noexcept { return *d2h_; }
  /// What each link has carried since construction. Read on the scheduler's thread.
  [[nodiscard]] const link_use& h2d_use() const noexcept { return h2d_use_; }
  [[nodiscard]] const link_use& d2h_use() const noexcept { return d2h_use_; }
  [[nodiscard]] const link_use& read_use(std::size_t path) const { return paths_.at(path).reads; }
  [[nodiscard]] const link_use& write_use(std::size_t path) const { return paths_.at(path).writes; }

 private:
  enum class leg : std::uint8_t { storage, copy };

  // One chunk in flight. Lives in `tasks_` for ever, is reused through `free_tasks_`.
  struct task {
    mover* owner = nullptr;
    move* of = nullptr;
    std::uint64_t piece = 0;
    leg at = leg::storage;
    std::byte* staging = nullptr;
    link_use* link = nullptr;  ///< that the leg under way loads
    page_transfer transfer;
    std::exception_ptr failure;
    time_point started;
    time_point ended;
  };

  struct path_load {
    link_use reads;
    link_use writes;
  };

  static void storage_done(page_transfer& transfer, std::exception_ptr failure) noexcept;
  void post(task& t) noexcept;
  [[nodiscard]] task& take_task(move& m);
  void give_task(task& t);

  void issue();
  [[nodiscard]] bool issue_one(move& m);
  [[nodiscard]] bool issue_storage(move& m, std::byte* memory, std::byte* staging);
  [[nodiscard]] bool issue_copy(move& m, copy_direction direction, std::byte* staging);
  void start_storage(task& t, io::operation_kind kind, std::byte* memory);
  void start_copy(task& t, copy_direction direction, std::byte* host);
  void take_completions();
  void finish_leg(task& t);
  void end_piece(task& t);

  [[nodiscard]] bool in_chunks(const move& m) const noexcept;
  [[nodiscard]] byte_count piece_bytes(const move& m) const noexcept;
  [[nodiscard]] extent piece_extent(const move& m, std::uint64_t piece) const noexcept;
  [[nodiscard]] link_use& storage_link(const move& m, std::uint64_t piece, io::operation_kind kind);
  [[nodiscard]] bool storage_is_full(const move& m, std::uint64_t piece, io::operation_kind kind);

  device& device_;
  page_store* store_;
  staging_pool& staging_;
  mover_options options_;
  unique_function<void()> wake_;
  telemetry::timeline* timeline_;
  telemetry::lane_id h2d_lane_ = 0;
  telemetry::lane_id d2h_lane_ = 0;
  std::unique_ptr<stream> h2d_;
  std::unique_ptr<stream> d2h_;

  std::vector<move*> active_;  // best priority first
  std::vector<move*> ended_;
  std::uint64_t sequence_ = 0;
  std::deque<task> tasks_;
  std::vector<task*> free_tasks_;
  std::vector<task*> second_legs_;    // storage reads that are done and wait for a copy slot, oldest first
  std::vector<task*> second_writes_;  // device copies that are done and wait for a storage slot
  link_use h2d_use_;
  link_use d2h_use_;
  std::vector<path_load> paths_;

  std::mutex inbox_mutex_;
  std::condition_variable inbox_filled_;
  std::vector<task*> inbox_;
  std::vector<task*> taken_;
};

}  // namespace forebay
