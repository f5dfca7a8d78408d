#pragma once

#include <mutex>

#include <forebay/base/bytes.hpp>
#include <forebay/io/backend.hpp>
#include <forebay/store/page_store.hpp>

#include "store/transfer_workers.hpp"

namespace forebay::store_detail {

/// Buffered transfers at once, in bytes: what they may leave in the page cache before it is written back and dropped.
inline constexpr byte_count cache_window_bytes = 8_MiB;

/// Keeps the page cache of buffered files small: at most a window of bytes is between its start and its drop from the
/// cache; further transfers queue, first in, first out. One larger than the window goes alone. Thread-safe.
class cache_window {
 public:
  /// True: go on. False: `t` is queued, and a later `leave` hands it out.
  [[nodiscard]] bool enter(page_transfer& t) noexcept;
  /// Gives `bytes` back; `start(transfer)` is called, without the lock, for each queued transfer that fits now.
  template <typename Start>
  void leave(byte_count bytes, Start&& start) noexcept {
    transfer_list admitted;
    {
      const std::scoped_lock lock(mutex_);
      inside_ -= bytes;
      admit(admitted);
    }
    while (page_transfer* t = admitted.pop()) {
      start(*t);
    }
  }

 private:
  [[nodiscard]] bool fits(const page_transfer& t) const noexcept;
  void admit(transfer_list& admitted) noexcept;

  std::mutex mutex_;
  byte_count inside_ = 0;
  transfer_list queue_;
};

/// Writes a range of a buffered file back (after a write) and drops it from the page cache. 0 or the errno of the
/// write-back. Blocks.
[[nodiscard]] int drop_from_cache(const io::operation& op) noexcept;

}  // namespace forebay::store_detail
