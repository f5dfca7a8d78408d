#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <forebay/base/gate.hpp>
#include <forebay/io/service_thread.hpp>
#include <forebay/store/detail/link_pacer.hpp>
#include <forebay/store/detail/rate_meter.hpp>
#include <forebay/store/page_store.hpp>

#include "store/cache_window.hpp"
#include "store/checksum_meter.hpp"
#include "store/directory_claim.hpp"
#include "store/page_table.hpp"
#include "store/transfer_workers.hpp"

namespace forebay {

/// The parts of a store, in the order in which they are built; they end in the reverse order.
///
/// A transfer goes submit -> [window of a buffered file] -> I/O backend, beside it [worker: checksum of a write] ->
/// [worker: checksum of a read, cache drop, error] -> complete. Checksums are computed on workers: XXH3 takes 35 to 55
/// microseconds per MiB, which on the ring's thread would hold up every other completion. Reads of small chunks are
/// hashed where they are: a hop to a worker costs more. A write that fails for good goes back from the last worker to
/// the backend, with another path.
struct page_store::impl {
  impl(page_store_options wanted, telemetry::timeline* line);
  ~impl();
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  void submit(page_store& store, page_transfer& t) noexcept;
  /// Shares follow what was measured. Under `table_mutex`.
  void adapt();
  /// Measures depth and merging, when that is possible and not done yet. Under `table_mutex`, after a reservation.
  void tune();
  [[nodiscard]] std::vector<path_rate> measured_rates() const;

  page_store_options options;
  telemetry::timeline* timeline;
  std::vector<store_detail::directory_claim> claims;
  mutable std::mutex table_mutex;  // of `table`, `degradations` and `tuning`
  std::vector<std::string> degradations;
  storage_tuning tuning;
  std::unique_ptr<store_detail::page_table> table;
  std::vector<telemetry::lane_id> read_lanes;
  std::vector<telemetry::lane_id> write_lanes;
  std::atomic<byte_count> bytes_read{0};
  std::atomic<byte_count> bytes_written{0};
  std::deque<store_detail::rate_meter> meters;  // one per path
  store_detail::checksum_meter hashing;
  io::process_mark process;

 private:
  void open_paths();
  void start_services();
  void share_as_measured();
  [[nodiscard]] byte_count common_alignment(std::vector<io::direct_file>& files);
  [[nodiscard]] static page_store::impl& of(page_transfer& t) noexcept { return *t.store->impl_; }
  [[nodiscard]] bool buffered(const page_transfer& t) const noexcept;
  [[nodiscard]] bool checked(const page_transfer& t) const noexcept;
  [[nodiscard]] bool needs_worker_after(const page_transfer& t) const noexcept;
  [[nodiscard]] byte_count real_bytes(const page_transfer& t) const noexcept;
  [[nodiscard]] bool prepare(page_transfer& t) noexcept;
  void work(page_transfer& t) noexcept;
  void start_io(page_transfer& t) noexcept;
  void give_to_backend(page_transfer& t) noexcept;
  void take_from_backend(page_transfer& t) noexcept;
  void aim(page_transfer& t) noexcept;
  [[nodiscard]] std::uint64_t checksum(const page_transfer& t) noexcept;
  [[nodiscard]] bool go_elsewhere(page_transfer& t) noexcept;
  void retire(const page_transfer& t);
  void leave_window(const page_transfer& t) noexcept;
  static void io_completed(io::operation& op, io::result outcome) noexcept;
  void conclude(page_transfer& t) noexcept;
  void judge(page_transfer& t);
  void finish(page_transfer& t) noexcept;
  void record(const page_transfer& t) noexcept;
  [[nodiscard]] std::string describe(const page_transfer& t) const;

  store_detail::cache_window window;
  std::unique_ptr<store_detail::link_pacer> pacer;
  std::unique_ptr<store_detail::transfer_workers> workers;
  std::unique_ptr<io::backend> backend;
  gate inside;  // transfers in flight, and calls of submit

  friend class page_store;
};

}  // namespace forebay
