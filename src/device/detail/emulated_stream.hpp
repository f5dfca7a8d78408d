#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include <forebay/device/device.hpp>

#include "device/detail/link.hpp"
#include "device/detail/stream_progress.hpp"

namespace forebay::detail {

/// What the streams of one emulated device share.
struct emulated_links {
  emulated_links(byte_count h2d_rate, byte_count d2h_rate) : h2d(h2d_rate), d2h(d2h_rate), local(0) {}

  [[nodiscard]] link& of(copy_direction direction) noexcept {
    return direction == copy_direction::host_to_device ? h2d
                                                       : (direction == copy_direction::device_to_host ? d2h : local);
  }

  link h2d;
  link d2h;
  link local;
};

/// A queue of operations and the thread that does them in order. `record` and `passed` cost an atomic load.
class emulated_stream final : public stream {
 public:
  emulated_stream(stream_kind kind, std::span<std::byte> arena, emulated_links& links);
  ~emulated_stream() override;

  void copy(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) override;
  void launch(unique_function<void()> work) override;
  void notify(unique_function<void()> callback) override;
  [[nodiscard]] stream_point record() override { return progress_->enqueued(); }
  void wait(const stream& other, stream_point point) override;
  [[nodiscard]] bool passed(stream_point point) const noexcept override { return progress_->passed(point); }
  using stream::synchronize;
  void synchronize(stream_point point) override;
  [[nodiscard]] std::exception_ptr failure() const noexcept override;
  [[nodiscard]] time_point idle_since() const noexcept override;
  [[nodiscard]] duration waited() const noexcept override;

 private:
  enum class action : std::uint8_t { copy, launch, notify, wait };

  struct operation {
    action what{};
    copy_direction direction{};
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    byte_count bytes = 0;
    time_point enqueued_at{};                        // copies over a rated link only
    unique_function<void()> work;                    // launch, notify
    std::shared_ptr<const stream_progress> awaited;  // wait; shared, since the other stream may be destroyed before
    stream_point point = 0;
  };

  void enqueue(operation op);
  void run();
  void perform(operation& op);
  void do_wait(const operation& op);
  void fail(std::exception_ptr why) noexcept;

  const std::span<std::byte> arena_;
  emulated_links& links_;
  const std::shared_ptr<stream_progress> progress_ = std::make_shared<stream_progress>();

  mutable std::mutex mutex_;
  std::condition_variable work_available_;
  std::deque<operation> queue_;
  bool sleeping_ = false;  // the worker has nothing to do
  bool closing_ = false;
  std::exception_ptr failure_;
  std::size_t queued_work_ = 0;  // operations in the queue that are not waits
  bool in_wait_ = false;
  time_point wait_counts_since_{};  // of the present wait; max() while no work is behind it
  duration waited_{};

  time_point ready_{};  // the worker's own: when the last operation was due to end
  std::thread worker_;
};

}  // namespace forebay::detail
