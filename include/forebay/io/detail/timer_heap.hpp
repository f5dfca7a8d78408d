#pragma once

#include <forebay/io/backend.hpp>

namespace forebay::io::detail {

/// Operations by their `not_before`, earliest first: an intrusive pairing heap, so that a completion path never
/// allocates. Insertion O(1), removal O(log n) amortised. Not thread-safe.
/// Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting heap", 1986.
class timer_heap {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  [[nodiscard]] time_point earliest() const noexcept { return root_->not_before; }

  void push(operation& op) noexcept {
    op.next = nullptr;
    op.child = nullptr;
    root_ = merge(root_, &op);
  }

  /// The earliest operation if its time has come, else null.
  [[nodiscard]] operation* pop_due(time_point now) noexcept {
    if (root_ == nullptr || root_->not_before > now) {
      return nullptr;
    }
    operation* first = root_;
    root_ = merge_children(first->child);
    first->child = nullptr;
    return first;
  }

 private:
  [[nodiscard]] static operation* merge(operation* a, operation* b) noexcept {
    if (a == nullptr || b == nullptr) {
      return a == nullptr ? b : a;
    }
    if (b->not_before < a->not_before) {
      operation* earlier = b;
      b = a;
      a = earlier;
    }
    b->next = a->child;
    a->child = b;
    return a;
  }

  /// Pairs siblings from the left, then merges the pairs from the right.
  [[nodiscard]] static operation* merge_children(operation* child) noexcept {
    operation* pairs = nullptr;
    while (child != nullptr) {
      operation* a = child;
      operation* b = a->next;
      child = b == nullptr ? nullptr : b->next;
      a->next = nullptr;
      if (b != nullptr) {
        b->next = nullptr;
      }
      operation* pair = merge(a, b);
      pair->next = pairs;
      pairs = pair;
    }
    operation* root = nullptr;
    while (pairs != nullptr) {
      operation* pair = pairs;
      pairs = pair->next;
      pair->next = nullptr;
      root = merge(root, pair);
    }
    return root;
  }

  operation* root_ = nullptr;
};

}  // namespace forebay::io::detail
