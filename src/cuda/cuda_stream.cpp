#include "cuda/detail/cuda_stream.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "device/detail/copy_range.hpp"

namespace forebay::detail {
namespace {

constexpr stream_point all_points = std::numeric_limits<stream_point>::max();

cudaMemcpyKind kind_of(copy_direction direction) {
  switch (direction) {
    case copy_direction::host_to_device:
      return cudaMemcpyHostToDevice;
    case copy_direction::device_to_host:
      return cudaMemcpyDeviceToHost;
    case copy_direction::device_to_device:
      return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

struct callback_call {
  std::shared_ptr<callback_list> list;
  callback_list::ticket ticket;
  fallback_thread& thread;
};

// cudaLaunchHostFunc would be skipped after an error of the context; this is called exactly once, come what may. No
// call of the run-time is permitted here, not even a question, so a thread of ours runs the callback.
void CUDART_CB run_callback(cudaStream_t, cudaError_t, void* data) {
  const std::unique_ptr<callback_call> call(static_cast<callback_call*>(data));
  call->thread.post([list = call->list, ticket = call->ticket] { list->run_through(ticket); });
}

}  // namespace

cuda_stream::cuda_stream(cuda_context& context, cudaStream_t handle, bool owned)
    : context_(context), handle_(handle), owned_(owned) {
  const current_device current(context_.ordinal);
  base_ = std::make_shared<cuda_event>();
  check_cuda(base_->create(), "cudaEventCreateWithFlags");
  check_cuda(cudaEventRecord(base_->get(), handle_), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(base_->get()), "cudaEventSynchronize");
  base_time_ = std::chrono::steady_clock::now();
  newest_ = base_;
  seen_idle_ = base_time_;
}

cuda_stream::~cuda_stream() {
  const current_device current(context_.ordinal);
  if (const cudaError_t code = cudaStreamSynchronize(handle_); code != cudaSuccess) {
    const std::scoped_lock lock(mutex_);
    latch(code, "cudaStreamSynchronize");
  }
  callbacks_->wait_empty();
  if (owned_ && cudaStreamDestroy(handle_) != cudaSuccess) {
    forget_cuda_error();
  }
}

void cuda_stream::copy(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) {
  check_copy(context_.arena, to, from, bytes, direction);
  const std::scoped_lock lock(mutex_);
  const std::byte* const host = direction == copy_direction::host_to_device ? from : to;
  for (byte_count done = 0; done < bytes && !failure_;) {
    const byte_count left = bytes - done;
    const bool local = direction == copy_direction::device_to_device;
    const byte_count n = local ? left : context_.pinned.uniform_run(host + done, left);
    judge(cudaMemcpyAsync(to + done, from + done, n, kind_of(direction), handle_), "cudaMemcpyAsync");
    enqueued();
    done += n;
  }
}

void cuda_stream::launch(unique_function<void()>) {
  throw unsupported_error(
      "a CUDA stream can't run host code on device memory: enqueue kernels on its native_handle() instead of launch()");
}

void cuda_stream::notify(unique_function<void()> callback) {
  FOREBAY_EXPECTS(callback, "a notification needs a callback");
  const std::scoped_lock lock(mutex_);
  const callback_list::ticket ticket = callbacks_->add(std::move(callback), last_);
  if (!failure_) {
    auto call = std::make_unique<callback_call>(callback_call{callbacks_, ticket, context_.fallback});
    const cudaError_t code = cudaStreamAddCallback(handle_, run_callback, call.get(), 0);
    if (code == cudaSuccess) {
      static_cast<void>(call.release());
      enqueued();
      return;
    }
    try {
      judge(code, "cudaStreamAddCallback");  // a failure of the context hands all callbacks to the fallback thread
    } catch (...) {
      callbacks_->withdraw(ticket);
      throw;
    }
    return;
  }
  context_.fallback.post([list = callbacks_] { list->run_through(callback_list::all); });
}

stream_point cuda_stream::record() {
  const std::scoped_lock lock(mutex_);
  if (!failure_) {
    enqueued();  // work that others enqueued on the handle stands behind the waits before it
    newest_ = put_mark();
  } else {
    ++last_;
  }
  return last_;
}

void cuda_stream::wait(const stream& other, stream_point point) {
  const auto* const cuda = dynamic_cast<const cuda_stream*>(&other);
  FOREBAY_EXPECTS(cuda != nullptr && &cuda->context_ == &context_, "a stream waits for a stream of its own device");
  const event_ptr event = cuda->pending_event(point);
  if (!event || cuda == this) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  settle_waits();
  if (failure_) {
    return;
  }
  const event_ptr begin = put_mark();
  judge(cudaStreamWaitEvent(handle_, event->get(), 0), "cudaStreamWaitEvent");
  const event_ptr end = put_mark();
  newest_ = end;
  seen_idle_ = time_point{};
  if (begin && end) {
    waits_.push_back({begin, end, time_point::max()});
  }
}

bool cuda_stream::passed(stream_point point) const noexcept {
  if (passed_.load(std::memory_order_acquire) >= point) {
    return true;
  }
  const std::scoped_lock lock(mutex_);
  reap();
  return passed_.load(std::memory_order_relaxed) >= point;
}

void cuda_stream::synchronize(stream_point point) {
  if (const event_ptr event = pending_event(point)) {
    const cudaError_t code = cudaEventSynchronize(event->get());
    const std::scoped_lock lock(mutex_);
    if (code != cudaSuccess) {
      latch(code, "cudaEventSynchronize");
    }
    reap();
  }
  if (const std::exception_ptr why = failure()) {
    callbacks_->wait_empty();
    std::rethrow_exception(why);
  }
  callbacks_->wait_before(point);
}

std::exception_ptr cuda_stream::failure() const noexcept {
  const std::scoped_lock lock(mutex_);
  if (!failure_) {
    if (const cudaError_t code = cudaStreamQuery(handle_); code != cudaSuccess && code != cudaErrorNotReady) {
      latch(code, "cudaStreamQuery");
    }
  }
  return failure_;
}

void cuda_stream::fill(std::byte* to, std::byte pattern, byte_count bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) {
      judge(cudaMemsetAsync(to, std::to_integer<int>(pattern), bytes, handle_), "cudaMemsetAsync");
      enqueued();
    }
  }
  synchronize();
}

/// The event of the first point at or behind `point`; null when it is known to have passed.
cuda_stream::event_ptr cuda_stream::pending_event(stream_point point) const {
  const std::scoped_lock lock(mutex_);
  FOREBAY_EXPECTS(point <= last_, "the point has been recorded");
  reap();
  const auto first = std::lower_bound(marks_.begin(), marks_.end(), point,
                                      [](const mark& m, stream_point wanted) { return m.point < wanted; });
  return passed_.load(std::memory_order_relaxed) >= point || first == marks_.end() ? nullptr : first->event;
}

void cuda_stream::enqueued() const noexcept {
  newest_ = nullptr;
  seen_idle_ = time_point{};
  for (auto w = waits_.rbegin(); w != waits_.rend() && w->behind == time_point::max(); ++w) {
    w->behind = std::chrono::steady_clock::now();
  }
}

// An error that stays with the context fails the stream; any other is the caller's to hear.
void cuda_stream::judge(cudaError_t code, const char* call) const {
  if (code == cudaSuccess) {
    return;
  }
  forget_cuda_error();
  const cudaError_t health = cudaStreamQuery(handle_);
  if (health != cudaSuccess && health != cudaErrorNotReady) {
    latch(code, call);
    return;
  }
  check_cuda(code, call);
}

void cuda_stream::latch(cudaError_t code, const char* call) const noexcept {
  forget_cuda_error();
  if (failure_) {
    return;
  }
  failure_ = std::make_exception_ptr(
      device_error(fmt::format("CUDA device {} failed, found by {}: {}", context_.ordinal, call, describe_cuda(code))));
  marks_.clear();
  waits_.clear();
  newest_ = nullptr;
  passed_.store(all_points, std::memory_order_release);
  context_.fallback.post([list = callbacks_] { list->run_through(callback_list::all); });
}

cuda_stream::event_ptr cuda_stream::take_event() const {
  const auto alone = std::find_if(spare_.begin(), spare_.end(), [](const event_ptr& e) { return e.use_count() == 1; });
  if (alone == spare_.end()) {
    const current_device current(context_.ordinal);
    auto made = std::make_shared<cuda_event>();
    judge(made->create(), "cudaEventCreateWithFlags");
    return made;
  }
  event_ptr event = std::move(*alone);
  *alone = std::move(spare_.back());
  spare_.pop_back();
  return event;
}

/// Records the next point; null when that showed that the stream has failed.
cuda_stream::event_ptr cuda_stream::put_mark() {
  if (marks_.size() >= 16) {
    reap();  // so that the marks of a stream that nobody asks about don't pile up
  }
  if (failure_) {
    ++last_;
    return nullptr;
  }
  event_ptr event = take_event();
  if (!failure_) {
    judge(cudaEventRecord(event->get(), handle_), "cudaEventRecord");
  }
  ++last_;
  if (failure_) {
    return nullptr;
  }
  marks_.push_back({last_, event});
  return event;
}

void cuda_stream::reap() const noexcept {
  while (!marks_.empty()) {
    const cudaError_t code = cudaEventQuery(marks_.front().event->get());
    if (code == cudaErrorNotReady) {
      return;
    }
    if (code != cudaSuccess) {
      latch(code, "cudaEventQuery");
      return;
    }
    passed_.store(marks_.front().point, std::memory_order_release);
    spare_.push_back(std::move(marks_.front().event));
    marks_.pop_front();
  }
}

}  // namespace forebay::detail
