#include "io/thread_backend.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include <forebay/base/error.hpp>

namespace forebay::io {
namespace {

std::int64_t transfer_now(const interceptor::transfer& piece) noexcept {
  const auto offset = static_cast<off_t>(piece.offset);
  const ssize_t moved = piece.kind == operation_kind::read ? ::pread(piece.file, piece.memory, piece.bytes, offset)
                                                           : ::pwrite(piece.file, piece.memory, piece.bytes, offset);
  return moved < 0 ? -std::int64_t{errno} : std::int64_t{moved};
}

}  // namespace

thread_backend::thread_backend(const backend_options& options, std::vector<std::string> degradations)
    : work_(options), degradations_(std::move(degradations)) {
  const unsigned wanted = std::max(1U, std::min(options.threads, options.depth));
  for (unsigned i = 0; i < wanted; ++i) {
    try {
      threads_.push_back(start_service_thread("forebay-io", [this] { serve(); }));
    } catch (const io_error& refused) {
      if (threads_.empty()) {
        throw;
      }
      degradations_.push_back(fmt::format("{} of {} I/O threads run: {}", i, wanted, refused.what()));
      break;
    }
  }
}

thread_backend::~thread_backend() {
  if (!process_.same_process()) {
    for (std::thread& thread : threads_) {
      thread.detach();
    }
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void thread_backend::submit(operation& op) noexcept {
  detail::piecework::start(op);
  const std::scoped_lock lock(mutex_);
  ++unfinished_;
  ready_.push(op);
  changed_.notify_one();
}

void thread_backend::serve() noexcept {
  std::unique_lock lock(mutex_);
  while (operation* op = next(lock)) {
    lock.unlock();
    if (op->held) {
      op->held = false;
      settle(*op);
    } else {
      run_piece(*op);
    }
    lock.lock();
  }
}

/// Waits for an operation that can go on; null when all is done and the backend ends.
operation* thread_backend::next(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (operation* due = timers_.empty() ? nullptr : timers_.pop_due(std::chrono::steady_clock::now())) {
      return due;
    }
    if (operation* op = ready_.pop()) {
      return op;
    }
    if (stop_ && unfinished_ == 0) {
      return nullptr;
    }
    if (timers_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, timers_.earliest());
    }
  }
}

void thread_backend::run_piece(operation& op) noexcept {
  if (work_.begin(op)) {
    const interceptor::transfer piece = work_.piece(op);
    work_.executed(op, transfer_now(piece));
  }
  if (detail::piecework::hold(op, std::chrono::steady_clock::now())) {
    wait_in_timers(op);
  } else {
    settle(op);
  }
}

void thread_backend::settle(operation& op) noexcept {
  const detail::decision decided = work_.settle(op, std::chrono::steady_clock::now());
  switch (decided.what) {
    case detail::verdict::again:
      queue(op);
      return;
    case detail::verdict::later:
      wait_in_timers(op);
      return;
    case detail::verdict::finished:
      break;
  }
  op.complete(op, decided.how);
  const std::scoped_lock lock(mutex_);
  if (--unfinished_ == 0 && stop_) {
    changed_.notify_all();
  }
}

void thread_backend::wait_in_timers(operation& op) noexcept {
  const std::scoped_lock lock(mutex_);
  timers_.push(op);
  changed_.notify_one();  // this thread may go on to other work while a sleeper waits for a later time
}

void thread_backend::queue(operation& op) noexcept {
  const std::scoped_lock lock(mutex_);
  ready_.push(op);  // this thread, at least, looks at it next
}

}  // namespace forebay::io
