#include "store/transfer_workers.hpp"

#include <algorithm>
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
  queues_[std::min(t.urgency, io::least_urgent)].push(t);
  if (idle_ > 0) {
    posted_.notify_one();  // under the lock: without it the workers may be gone once the transfer is done
  }
}

page_transfer* transfer_workers::take() noexcept {
  for (transfer_list& queue : queues_) {
    if (page_transfer* t = queue.pop()) {
      return t;
    }
  }
  return nullptr;
}

void transfer_workers::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    page_transfer* t = take();
    if (t == nullptr && stop_) {
      return;
    }
    if (t == nullptr) {
      ++idle_;
      posted_.wait(lock);
      --idle_;
      continue;
    }
    lock.unlock();
    work_(*t);
    lock.lock();
  }
}

}  // namespace forebay::store_detail
