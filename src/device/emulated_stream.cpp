#include "device/detail/emulated_stream.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <pthread.h>
#include <sys/prctl.h>

#include <forebay/base/contract.hpp>

#include "device/detail/copy_range.hpp"

namespace forebay::detail {
namespace {

const char* thread_name(stream_kind kind) {
  switch (kind) {
    case stream_kind::compute:
      return "fb-compute";
    case stream_kind::host_to_device:
      return "fb-h2d";
    case stream_kind::device_to_host:
      return "fb-d2h";
  }
  return "fb-stream";
}

/// Starts a thread that takes no signals: those belong to the host program's own threads.
template <typename Body>
std::thread start_without_signals(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread result(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return result;
  } catch (const std::system_error& e) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw device_error(std::string("the emulated device can't start a stream's thread: ") + e.what());
  }
}

}  // namespace

emulated_stream::emulated_stream(stream_kind kind, std::span<std::byte> arena, emulated_links& links)
    : arena_(arena), links_(links) {
  worker_ = start_without_signals([this, kind] {
    pthread_setname_np(pthread_self(), thread_name(kind));
    prctl(PR_SET_TIMERSLACK, 1UL);  // rated links sleep to exact deadlines
    run();
  });
}

emulated_stream::~emulated_stream() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  work_available_.notify_one();
  worker_.join();
}

void emulated_stream::copy(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) {
  check_copy(arena_, to, from, bytes, direction);
  operation op;
  op.what = action::copy;
  op.direction = direction;
  op.to = to;
  op.from = from;
  op.bytes = bytes;
  if (links_.of(direction).rated()) {
    op.enqueued_at = std::chrono::steady_clock::now();
  }
  enqueue(std::move(op));
}

void emulated_stream::launch(unique_function<void()> work) {
  FOREBAY_EXPECTS(work, "a launch needs work");
  operation op;
  op.what = action::launch;
  op.work = std::move(work);
  enqueue(std::move(op));
}

void emulated_stream::notify(unique_function<void()> callback) {
  FOREBAY_EXPECTS(callback, "a notification needs a callback");
  operation op;
  op.what = action::notify;
  op.work = std::move(callback);
  enqueue(std::move(op));
}

void emulated_stream::wait(const stream& other, stream_point point) {
  const auto* const emulated = dynamic_cast<const emulated_stream*>(&other);
  FOREBAY_EXPECTS(emulated != nullptr && &emulated->links_ == &links_, "a stream waits for a stream of its own device");
  FOREBAY_EXPECTS(point <= emulated->progress_->enqueued(), "a stream waits for a point that has been recorded");
  if (emulated == this || emulated->passed(point)) {
    return;
  }
  operation op;
  op.what = action::wait;
  op.awaited = emulated->progress_;
  op.point = point;
  enqueue(std::move(op));
}

void emulated_stream::synchronize(stream_point point) {
  FOREBAY_EXPECTS(point <= progress_->enqueued(), "a stream is synchronized at a point that has been recorded");
  progress_->block_until(point);
  if (const std::exception_ptr why = failure()) {
    std::rethrow_exception(why);
  }
}

std::exception_ptr emulated_stream::failure() const noexcept {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

time_point emulated_stream::idle_since() const noexcept {
  const std::scoped_lock lock(mutex_);  // nothing is enqueued meanwhile, so idleness can't end between the two reads
  return progress_->idle() ? progress_->last_end() : time_point::max();
}

duration emulated_stream::waited() const noexcept {
  const std::scoped_lock lock(mutex_);
  if (in_wait_ && wait_counts_since_ != time_point::max()) {
    return waited_ + std::max(duration::zero(), std::chrono::steady_clock::now() - wait_counts_since_);
  }
  return waited_;
}

void emulated_stream::enqueue(operation op) {
  const bool is_work = op.what != action::wait;
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back(std::move(op));
    progress_->add();
    queued_work_ += is_work ? 1 : 0;
    if (is_work && in_wait_ && wait_counts_since_ == time_point::max()) {
      wait_counts_since_ = std::chrono::steady_clock::now();
    }
    wake = std::exchange(sleeping_, false);
  }
  if (wake) {
    work_available_.notify_one();
  }
}

void emulated_stream::run() {
  for (;;) {
    operation op;
    bool skip = false;
    {
      std::unique_lock lock(mutex_);
      while (queue_.empty() && !closing_) {
        sleeping_ = true;
        work_available_.wait(lock);
      }
      if (queue_.empty()) {
        return;
      }
      op = std::move(queue_.front());
      queue_.pop_front();
      queued_work_ -= op.what != action::wait ? 1 : 0;
      skip = failure_ != nullptr && (op.what == action::copy || op.what == action::launch);
    }
    if (!skip) {
      perform(op);
    }
    op = operation{};  // what the work has captured is gone before anyone sees the point pass
    progress_->complete(std::chrono::steady_clock::now());
  }
}

void emulated_stream::perform(operation& op) {
  switch (op.what) {
    case action::copy:
      if (op.bytes > 0) {
        ready_ = links_.of(op.direction).transfer(op.to, op.from, op.bytes, std::max(ready_, op.enqueued_at));
      }
      return;
    case action::launch:
      try {
        op.work();
      } catch (...) {
        fail(std::current_exception());
      }
      ready_ = std::chrono::steady_clock::now();
      return;
    case action::notify:
      [&]() noexcept { op.work(); }();
      return;  // short by contract: does not delay what a rated link has queued
    case action::wait:
      do_wait(op);
      return;
  }
}

void emulated_stream::do_wait(const operation& op) {
  if (!op.awaited->passed(op.point)) {
    {
      const std::scoped_lock lock(mutex_);
      in_wait_ = true;
      wait_counts_since_ = queued_work_ > 0 ? std::chrono::steady_clock::now() : time_point::max();
    }
    op.awaited->block_until(op.point);
    const std::scoped_lock lock(mutex_);
    in_wait_ = false;
    if (wait_counts_since_ != time_point::max()) {
      waited_ += std::chrono::steady_clock::now() - wait_counts_since_;
    }
  }
  // The point passed at some time up to the last end; a later copy can't have been ready before.
  ready_ = std::max(ready_, op.awaited->last_end());
}

void emulated_stream::fail(std::exception_ptr why) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!failure_) {
    failure_ = std::move(why);
  }
}

}  // namespace forebay::detail
