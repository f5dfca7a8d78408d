#include "store/cache_window.hpp"

#include <cerrno>

#include <fcntl.h>

namespace forebay::store_detail {

bool cache_window::enter(page_transfer& t) noexcept {
  const std::scoped_lock lock(mutex_);
  if (queue_.front() == nullptr && fits(t)) {
    inside_ += t.operation.bytes;
    return true;
  }
  queue_.push(t);
  return false;
}

bool cache_window::fits(const page_transfer& t) const noexcept {
  return inside_ == 0 || inside_ + t.operation.bytes <= cache_window_bytes;
}

void cache_window::admit(transfer_list& admitted) noexcept {
  while (queue_.front() != nullptr && fits(*queue_.front())) {
    page_transfer* t = queue_.pop();
    inside_ += t->operation.bytes;
    admitted.push(*t);
  }
}

int drop_from_cache(const io::operation& op) noexcept {
  const auto offset = static_cast<off_t>(op.offset);
  const auto bytes = static_cast<off_t>(op.bytes);
  int failure = 0;
  if (op.kind == io::operation_kind::write) {
    constexpr unsigned write_and_wait =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (::sync_file_range(op.file, offset, bytes, write_and_wait) != 0 && (errno == EIO || errno == ENOSPC)) {
      failure = errno;
    }
  }
  // Advice: a file system without a page cache to drop refuses it.
  ::posix_fadvise(op.file, offset, bytes, POSIX_FADV_DONTNEED);
  return failure;
}

}  // namespace forebay::store_detail
