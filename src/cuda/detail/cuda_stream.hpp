#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <forebay/device/device.hpp>

#include "cuda/detail/callbacks.hpp"
#include "cuda/detail/cuda_call.hpp"
#include "cuda/detail/host_registry.hpp"

namespace forebay::detail {

/// What the streams of one CUDA device share.
struct cuda_context {
  int ordinal = 0;
  std::span<std::byte> arena;
  host_registry pinned;
  fallback_thread fallback;
};

/// A cudaStream_t as a stream. A point is the number of an event recorded on it; events are pooled. Once an error of
/// the context shows, the stream has failed: all points have passed, callbacks come from the fallback thread.
class cuda_stream final : public stream {
 public:
  /// Destroys `handle` at its end when `owned`.
  cuda_stream(cuda_context& context, cudaStream_t handle, bool owned);
  ~cuda_stream() override;

  void copy(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) override;
  void launch(unique_function<void()> work) override;
  void notify(unique_function<void()> callback) override;
  [[nodiscard]] stream_point record() override;
  void wait(const stream& other, stream_point point) override;
  [[nodiscard]] bool passed(stream_point point) const noexcept override;
  using stream::synchronize;
  void synchronize(stream_point point) override;
  [[nodiscard]] std::exception_ptr failure() const noexcept override;
  [[nodiscard]] time_point idle_since() const noexcept override;
  [[nodiscard]] duration waited() const noexcept override;
  [[nodiscard]] void* native_handle() const noexcept override { return handle_; }

  void fill(std::byte* to, std::byte pattern, byte_count bytes);

 private:
  using event_ptr = std::shared_ptr<cuda_event>;  // held by a mark and by those who wait for it; re-used when alone

  struct mark {
    stream_point point;
    event_ptr event;
  };
  struct standing {  // one wait: from when to when the stream stood in it, and since when work stands behind it
    event_ptr begin;
    event_ptr end;
    time_point behind;
  };

  // All of these are called with the mutex held.
  void enqueued() const noexcept;
  void judge(cudaError_t code, const char* call) const;
  void latch(cudaError_t code, const char* call) const noexcept;
  [[nodiscard]] event_ptr take_event() const;
  [[nodiscard]] event_ptr put_mark();
  void reap() const noexcept;
  void settle_waits() const noexcept;
  [[nodiscard]] time_point time_of(const cuda_event& event) const noexcept;

  [[nodiscard]] event_ptr pending_event(stream_point point) const;

  cuda_context& context_;
  const cudaStream_t handle_;
  const bool owned_;
  const std::shared_ptr<callback_list> callbacks_ = std::make_shared<callback_list>();

  mutable std::mutex mutex_;
  stream_point last_ = 0;
  mutable std::atomic<stream_point> passed_{0};
  mutable std::deque<mark> marks_;        // not yet seen to have passed
  mutable std::vector<event_ptr> spare_;  // events to use again
  mutable std::exception_ptr failure_;

  mutable event_ptr base_;  // an event whose time by our clock is known
  mutable time_point base_time_;
  mutable event_ptr newest_;        // behind all the work that we know of; null when work came after it
  mutable time_point seen_idle_{};  // what idle_since has answered since the last work; 0: nothing
  mutable std::deque<standing> waits_;
  mutable duration waited_{};
};

}  // namespace forebay::detail
