#include "cuda/detail/callbacks.hpp"

#include <utility>

namespace forebay::detail {

callback_list::ticket callback_list::add(unique_function<void()> callback, std::uint64_t behind) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back({next_, behind, std::move(callback)});
  return next_++;
}

void callback_list::withdraw(ticket t) {
  const std::scoped_lock lock(mutex_);
  if (!entries_.empty() && entries_.back().number == t) {
    entries_.pop_back();
    changed_.notify_all();
  }
}

void callback_list::run_through(ticket last) noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !running_; });
    if (entries_.empty() || entries_.front().number > last) {
      return;
    }
    entry next = std::move(entries_.front());
    entries_.pop_front();
    running_ = true;
    running_behind_ = next.behind;
    lock.unlock();
    next.call();
    next.call = nullptr;  // what it has captured goes before anyone sees that it is done
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

void callback_list::wait_empty() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return entries_.empty() && !running_; });
}

void callback_list::wait_before(std::uint64_t point) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return (entries_.empty() || entries_.front().behind >= point) && (!running_ || running_behind_ >= point);
  });
}

fallback_thread::~fallback_thread() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void fallback_thread::post(unique_function<void()> task) {
  const std::scoped_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

void fallback_thread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    unique_function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace forebay::detail
