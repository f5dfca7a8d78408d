#include "store/transfer_workers.hpp"

#include <utility>

#include <forebay/io/service_thread.hpp>

namespace forebay::store_detail {

transfer_workers::transfer_workers(unsigned count, unique_function<void(page_transfer&)> work)
    : work_(std::move(work)) {
  try {
    for (unsigned i = 0; i < count; ++i) {
      threads_.push_back(io::start_service_thread("forebay-store", [this] { serve(); }));
    }
  } catch (...) {
    if (threads_.empty()) {
      throw;
    }
  }
}

transfer_workers::~transfer_workers() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void transfer_workers::post(page_transfer& t) noexcept {
  const std::scoped_lock lock(mutex_);
  queue_.push(t);
  posted_.notify_one();
}

void transfer_workers::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return stop_ || queue_.front() != nullptr; });
    page_transfer* t = queue_.pop();
    if (t == nullptr) {
      return;
    }
    lock.unlock();
    work_(*t);
    lock.lock();
  }
}

}  // namespace forebay::store_detail
