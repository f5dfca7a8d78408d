#pragma once

#include <atomic>
#include <utility>

#include <forebay/io/backend.hpp>

namespace forebay::io::detail {

/// First in, first out, linked through `operation::next`. Not thread-safe.
class operation_list {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

  void push(operation& op) noexcept {
    op.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &op;
    tail_ = &op;
  }

  /// The first operation, or null.
  [[nodiscard]] operation* pop() noexcept {
    operation* first = head_;
    if (first != nullptr) {
      head_ = first->next;
      first->next = nullptr;
    }
    return first;
  }

 private:
  operation* head_ = nullptr;
  operation* tail_ = nullptr;
};

/// Many producers push, one consumer takes all at once, oldest first. Lock-free; no ABA, for nothing is popped singly.
class operation_inbox {
 public:
  void push(operation& op) noexcept {
    operation* head = head_.load(std::memory_order_relaxed);
    do {
      op.next = head;
    } while (!head_.compare_exchange_weak(head, &op, std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  [[nodiscard]] bool empty() const noexcept { return head_.load(std::memory_order_seq_cst) == nullptr; }

  /// Calls `each` for all that are there, oldest first.
  template <typename Each>
  void take(Each&& each) noexcept {
    operation* newest = head_.exchange(nullptr, std::memory_order_seq_cst);
    operation* oldest = nullptr;
    while (newest != nullptr) {
      oldest = std::exchange(newest, std::exchange(newest->next, oldest));
    }
    while (oldest != nullptr) {
      operation* op = oldest;
      oldest = op->next;
      each(*op);
    }
  }

 private:
  std::atomic<operation*> head_{nullptr};
};

}  // namespace forebay::io::detail
