#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <forebay/base/function.hpp>
#include <forebay/io/backend.hpp>
#include <forebay/io/detail/flight_table.hpp>
#include <forebay/io/detail/operation_list.hpp>
#include <forebay/io/detail/piecework.hpp>
#include <forebay/io/detail/request_queue.hpp>
#include <forebay/io/detail/timer_heap.hpp>
#include <forebay/io/service_thread.hpp>

#include "io/uring_ring.hpp"

namespace forebay::io {

/// io_uring: one thread owns the ring and is its single submitter. Other threads hand it operations through a lock-free
/// inbox, and wake it through an eventfd that the ring itself reads, so that one wait covers completions, submissions
/// and (by its timeout) retries and held results. The thread never spins and never sleeps otherwise.
class uring_backend final : public backend {
 public:
  /// \throws unsupported_error (with the reason) when the kernel refuses.
  explicit uring_backend(const backend_options& options);
  ~uring_backend() override;

  void submit(operation& op) noexcept override;
  void register_memory(std::span<std::byte> memory) override;
  void register_files(std::span<const int> files) override;
  void tune(unsigned depth, byte_count merge) override;
  [[nodiscard]] std::string name() const override { return "io_uring"; }
  [[nodiscard]] std::vector<std::string> degradations() const override;

 private:
  void serve();
  [[nodiscard]] bool open_ring();
  void call_on_ring(unique_function<void()> work);
  void run_call();
  void wake() noexcept;
  void arm_wake() noexcept;
  void fire_timers() noexcept;
  void take_newcomers() noexcept;
  void issue() noexcept;
  void start(operation* first) noexcept;
  void wait() noexcept;
  void wait_failed(int error_number) noexcept;
  void reap() noexcept;
  void ended(operation* first, std::int64_t outcome) noexcept;
  void land(operation& op) noexcept;
  void settle(operation& op) noexcept;
  [[nodiscard]] bool idle() const noexcept;

  // Of any thread.
  detail::operation_inbox inbox_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};
  int wake_fd_ = -1;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool opened_ = false;
  std::string refusal_;
  unique_function<void()> call_;
  bool call_waiting_ = false;
  std::vector<std::string> degradations_;
  std::vector<std::span<std::byte>> memory_;
  std::vector<int> files_;

  // Of the ring's thread.
  uring_ring* ring_ = nullptr;
  detail::piecework work_;
  unsigned depth_;
  unsigned failed_waits_ = 0;
  bool wake_armed_ = false;
  std::uint64_t wake_value_ = 0;
  detail::request_queue queue_;
  detail::flight_table flights_;
  detail::timer_heap timers_;

  process_mark process_;
  std::thread thread_;
};

}  // namespace forebay::io
