#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <semaphore>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/store/page_store.hpp>

#include "settings.hpp"
#include "workload.hpp"

namespace forebay::store_bench {

/// Counts bytes in flight for one thread that submits and waits. `completed` is one subtraction and one load; it wakes
/// the waiting thread once, when the level that it waits for is reached.
class flight_level {
 public:
  void submitted(byte_count bytes) noexcept { level_.fetch_add(static_cast<std::int64_t>(bytes)); }
  void completed(byte_count bytes) noexcept {
    const std::int64_t before = level_.fetch_sub(static_cast<std::int64_t>(bytes));
    const std::int64_t wanted = wanted_.load();
    if (before > wanted && before - static_cast<std::int64_t>(bytes) <= wanted) {
      reached_.release();
    }
  }
  [[nodiscard]] byte_count level() const noexcept { return static_cast<byte_count>(level_.load()); }
  /// Blocks until no more than `bytes` are in flight.
  void wait_for(byte_count bytes) noexcept {
    wanted_.store(static_cast<std::int64_t>(bytes));
    while (level_.load() > static_cast<std::int64_t>(bytes)) {
      reached_.acquire();  // may be of an earlier level, so we look again
    }
    wanted_.store(nobody_waits);
  }

 private:
  static constexpr std::int64_t nobody_waits = -1;
  std::atomic<std::int64_t> level_{0};
  std::atomic<std::int64_t> wanted_{nobody_waits};
  std::counting_semaphore<> reached_{0};
};

/// The tensors of one size through the page store, each a page with its own place in `memory`.
class store_side {
 public:
  store_side(const settings& s, std::span<std::byte> memory);

  /// Frees the pages that there are and makes those of `total` bytes in tensors of `tensor`.
  void lay_out(byte_count total, byte_count tensor);
  /// What one transfer moves at most.
  [[nodiscard]] byte_count granule() const;
  /// Moves the pieces (of a pass made with `granule`). \throws what a transfer ended with.
  void run(std::span<const piece> pieces);

  [[nodiscard]] std::string backend() const { return store_.backend_name(); }
  [[nodiscard]] std::vector<std::string> degradations() const { return store_.degradations(); }

 private:
  static void completed(page_transfer& t, std::exception_ptr failure) noexcept;

  std::span<std::byte> memory_;
  byte_count window_;
  byte_count tensor_ = 0;
  flight_level flight_;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<page_id> pages_;
  std::vector<page_transfer> transfers_;  // chunk c of tensor t at t * chunks per tensor + c
  page_store store_;                      // last: its threads use what stands above
};

}  // namespace forebay::store_bench
