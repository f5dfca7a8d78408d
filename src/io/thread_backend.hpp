#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <forebay/io/backend.hpp>
#include <forebay/io/detail/piecework.hpp>
#include <forebay/io/detail/request_queue.hpp>
#include <forebay/io/detail/timer_heap.hpp>
#include <forebay/io/service_thread.hpp>

namespace forebay::io {

/// preadv and pwritev on a few threads: what works everywhere. Retries and held results wait in a timer heap, never on
/// a thread.
class thread_backend final : public backend {
 public:
  /// \throws io_error when not even one thread can be started.
  thread_backend(const backend_options& options, std::vector<std::string> degradations);
  ~thread_backend() override;

  void submit(operation& op) noexcept override;
  void register_memory(std::span<std::byte>) override {}
  void register_files(std::span<const int> files) override;
  void tune(unsigned depth, byte_count merge) override;
  [[nodiscard]] std::string name() const override { return "threads"; }
  [[nodiscard]] std::vector<std::string> degradations() const override { return degradations_; }

 private:
  void serve() noexcept;
  [[nodiscard]] operation* next(std::unique_lock<std::mutex>& lock);
  void run(operation& first) noexcept;
  void land(operation& op) noexcept;
  void settle(operation& op) noexcept;
  void wait_in_timers(operation& op) noexcept;
  void put_back(operation* first) noexcept;

  detail::piecework work_;
  std::vector<int> files_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  detail::request_queue queue_;
  detail::timer_heap timers_;
  std::uint64_t unfinished_ = 0;  // submitted, and `complete` has not returned
  bool stop_ = false;
  std::vector<std::string> degradations_;
  process_mark process_;
  std::vector<std::thread> threads_;
};

}  // namespace forebay::io
