#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include <forebay/base/function.hpp>
#include <forebay/store/page_store.hpp>

namespace forebay::store_detail {

/// First in, first out, linked through `page_transfer::next`. Not thread-safe.
class transfer_list {
 public:
  void push(page_transfer& t) noexcept {
    t.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &t;
    tail_ = &t;
  }
  [[nodiscard]] page_transfer* front() const noexcept { return head_; }
  [[nodiscard]] page_transfer* pop() noexcept {
    page_transfer* first = head_;
    if (first != nullptr) {
      head_ = first->next;
    }
    return first;
  }

 private:
  page_transfer* head_ = nullptr;
  page_transfer* tail_ = nullptr;
};

/// A few threads for what transfers need of a CPU before and after the I/O: checksums, cache write-back, errors. The
/// urgent go first.
class transfer_workers {
 public:
  /// `work` is called for every transfer posted, on some worker; it must not throw.
  transfer_workers(unsigned count, unique_function<void(page_transfer&)> work);
  /// Does what was posted, then joins.
  ~transfer_workers();
  transfer_workers(const transfer_workers&) = delete;
  transfer_workers& operator=(const transfer_workers&) = delete;

  void post(page_transfer& t) noexcept;

 private:
  void serve() noexcept;
  [[nodiscard]] page_transfer* take() noexcept;

  unique_function<void(page_transfer&)> work_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::array<transfer_list, io::least_urgent + std::size_t{1}> queues_;  // by urgency
  unsigned idle_ = 0;                                                    // workers that wait
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace forebay::store_detail
