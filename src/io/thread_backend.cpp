#include "io/thread_backend.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <forebay/base/error.hpp>

namespace forebay::io {
namespace {

/// The run of `first` as one system call: bytes, or a negative errno.
std::int64_t transfer_now(const operation& first, const detail::piecework& work) noexcept {
  const interceptor::transfer start = work.piece(first);
  std::array<iovec, detail::largest_run> vectors;
  const auto count = static_cast<int>(work.gather(first, vectors).vectors);
  const auto offset = static_cast<off_t>(start.offset);
  const ssize_t moved = start.kind == operation_kind::read ? ::preadv(start.file, vectors.data(), count, offset)
                                                           : ::pwritev(start.file, vectors.data(), count, offset);
  return moved < 0 ? -std::int64_t{errno} : std::int64_t{moved};
}

}  // namespace

thread_backend::thread_backend(const backend_options& options, std::vector<std::string> degradations)
    : work_(options), queue_(options.depth, options.merge), degradations_(std::move(degradations)) {
  const unsigned wanted = std::max(1U, options.threads);
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

void thread_backend::register_files(std::span<const int> files) {
  work_.announce(files);
  const std::scoped_lock lock(mutex_);
  files_.insert(files_.end(), files.begin(), files.end());
  queue_.set_files(files_);
}

void thread_backend::tune(unsigned depth, byte_count merge) {
  const std::scoped_lock lock(mutex_);
  queue_.set_limits(depth, merge);
}

void thread_backend::submit(operation& op) noexcept {
  detail::piecework::start(op);
  const std::scoped_lock lock(mutex_);
  ++unfinished_;
  queue_.push(op);
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
      run(*op);
    }
    lock.lock();
  }
}

/// Waits for an operation that can go on; null when all is done and the backend ends.
operation* thread_backend::next(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (operation* due = timers_.empty() ? nullptr : timers_.pop_due(std::chrono::steady_clock::now())) {
      if (due->held) {
        return due;
      }
      queue_.push_front(*due);
    }
    if (operation* first = queue_.pop()) {
      return first;
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

void thread_backend::run(operation& first) noexcept {
  const detail::begun_run begun = work_.begin_run(&first);
  if (begun.rest != nullptr) {
    put_back(begun.rest);
  }
  detail::ended_run ended;
  if (begun.run != nullptr) {
    ended = work_.executed_run(begun.run, transfer_now(*begun.run, work_));
  }
  {
    const std::scoped_lock lock(mutex_);
    queue_.landed(first);
    if (queue_.can_pop()) {
      changed_.notify_all();  // the file has room for another transfer, and after a demand for several
    }
  }
  if (ended.rest != nullptr) {
    put_back(ended.rest);
  }
  for (operation* op = ended.landed; op != nullptr;) {
    operation* next = op->together;
    land(*op);  // `op` may be gone from here on
    op = next;
  }
  if (begun.refused != nullptr) {
    land(*begun.refused);
  }
}

void thread_backend::land(operation& op) noexcept {
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
      op.together = nullptr;
      put_back(&op);
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

/// Those that have had a turn and need another: first in line.
void thread_backend::put_back(operation* first) noexcept {
  const std::scoped_lock lock(mutex_);
  queue_.push_front_all(first);
  changed_.notify_one();
}

}  // namespace forebay::io
