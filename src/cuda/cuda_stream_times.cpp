// When a CUDA stream was idle and how long it has waited: what its events tell about time.
#include <algorithm>

#include "cuda/detail/cuda_stream.hpp"

namespace forebay::detail {
namespace {

// Elapsed times come as float milliseconds: re-based before a microsecond is lost.
constexpr float longest_elapsed_ms = 4'000.0F;

}  // namespace

// Work that others enqueued on the handle counts once a point has been recorded behind it.
time_point cuda_stream::idle_since() const noexcept {
  const std::scoped_lock lock(mutex_);
  if (!failure_) {
    const cudaError_t code = newest_ ? cudaEventQuery(newest_->get()) : cudaStreamQuery(handle_);
    if (code == cudaErrorNotReady) {
      return time_point::max();
    }
    if (code != cudaSuccess) {
      latch(code, newest_ ? "cudaEventQuery" : "cudaStreamQuery");
    }
  }
  if (seen_idle_ == time_point{}) {
    seen_idle_ = newest_ ? time_of(*newest_) : std::chrono::steady_clock::now();
  }
  return seen_idle_;
}

duration cuda_stream::waited() const noexcept {
  const std::scoped_lock lock(mutex_);
  settle_waits();
  if (failure_ || waits_.empty() || waits_.front().behind == time_point::max() ||
      cudaEventQuery(waits_.front().begin->get()) != cudaSuccess) {
    return waited_;
  }
  const time_point since = std::max(waits_.front().behind, time_of(*waits_.front().begin));
  return waited_ + std::max(duration::zero(), std::chrono::steady_clock::now() - since);
}

void cuda_stream::settle_waits() const noexcept {
  reap();
  while (!waits_.empty() && cudaEventQuery(waits_.front().end->get()) == cudaSuccess) {
    const standing& w = waits_.front();
    if (w.behind != time_point::max()) {
      const time_point begin = std::max(time_of(*w.begin), w.behind);
      waited_ += std::max(duration::zero(), time_of(*w.end) - begin);
    }
    waits_.pop_front();
  }
}

/// When a completed event happened, by our clock.
time_point cuda_stream::time_of(const cuda_event& event) const noexcept {
  float ms = 0.0F;
  if (const cudaError_t code = cudaEventElapsedTime(&ms, base_->get(), event.get()); code != cudaSuccess) {
    forget_cuda_error();
    return std::chrono::steady_clock::now();
  }
  const auto elapsed = std::chrono::duration_cast<duration>(std::chrono::duration<float, std::milli>(ms));
  const time_point time = std::min(base_time_ + elapsed, std::chrono::steady_clock::now());
  if (ms > longest_elapsed_ms && waits_.empty() && newest_.get() == &event) {
    base_ = newest_;
    base_time_ = time;
  }
  return time;
}

}  // namespace forebay::detail
