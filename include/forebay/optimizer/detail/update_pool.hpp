#pragma once

#include <cstddef>
#include <memory>

#include <forebay/base/function.hpp>

namespace forebay::detail {

/// The threads of an update: a TBB arena of a fixed size. What runs in it computes on memory that is already there and
/// never waits for I/O. Thread-safe.
class update_pool {
 public:
  /// `threads` including the calling one; 0: all CPUs that this process may use.
  explicit update_pool(unsigned threads);
  ~update_pool();
  update_pool(const update_pool&) = delete;
  update_pool& operator=(const update_pool&) = delete;

  /// Calls `work(i)` once for each i below `pieces`, on any of the threads, in any order; returns when all are done.
  /// All effects of the calls are visible to the caller then, and the caller's earlier ones to the calls.
  void for_each(std::size_t pieces, unique_function<void(std::size_t)> work);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace forebay::detail
