#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <liburing.h>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>

namespace forebay::io {

/// An io_uring with its tables of registered buffers and files. Everything but the constructor is called on one
/// thread: the ring's only submitter.
class uring_ring {
 public:
  uring_ring() = default;
  uring_ring(const uring_ring&) = delete;
  uring_ring& operator=(const uring_ring&) = delete;
  /// Unregisters explicitly (the kernel gives locked memory back late otherwise), then closes.
  ~uring_ring();

  /// Sets up the ring with the best flags that the kernel takes, and proves that it works. Empty, or why not.
  [[nodiscard]] std::string open(unsigned depth);

  /// 0 or an errno; on failure nothing stays registered of this kind.
  [[nodiscard]] int register_buffers(std::span<const std::span<std::byte>> ranges);
  [[nodiscard]] int register_files(std::span<const int> files);

  [[nodiscard]] io_uring_sqe* next_sqe() noexcept { return io_uring_get_sqe(&ring_); }
  /// Fills the entry, by registered buffer and file where they are registered.
  void prepare(io_uring_sqe& sqe, bool is_read, int file, std::byte* memory, byte_count bytes, byte_count offset,
               void* tag) const noexcept;

  /// Submits what is prepared and waits for a completion, at most until `deadline` (time_point::max(): for ever).
  /// 0 or an errno (ETIME: the deadline).
  [[nodiscard]] int submit_and_wait(time_point deadline) noexcept;

  /// Calls `each(tag, res)` for every completion there is.
  template <typename Each>
  void reap(Each&& each) noexcept {
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      each(io_uring_cqe_get_data(cqe), cqe->res);
      ++count;
    }
    io_uring_cq_advance(&ring_, count);
  }

  /// Takes back the prepared entries that the kernel has not seen, and calls `each(tag)` for them.
  template <typename Each>
  void withdraw(Each&& each) noexcept {
    io_uring_sq& sq = ring_.sq;
    const unsigned head = __atomic_load_n(sq.khead, __ATOMIC_ACQUIRE);
    const unsigned tail = sq.sqe_tail;
    sq.sqe_head = head;
    sq.sqe_tail = head;
    __atomic_store_n(sq.ktail, head, __ATOMIC_RELEASE);
    for (unsigned i = head; i != tail; ++i) {
      each(reinterpret_cast<void*>(sq.sqes[i & sq.ring_mask].user_data));
    }
  }

 private:
  struct registered_range {
    std::byte* begin;
    byte_count bytes;
  };

  [[nodiscard]] int set_up(unsigned depth);
  [[nodiscard]] std::string missing_service();
  [[nodiscard]] int buffer_index(const std::byte* memory, byte_count bytes) const noexcept;
  [[nodiscard]] int file_index(int file) const noexcept;

  io_uring ring_{};
  bool open_ = false;
  std::vector<registered_range> buffers_;  // by address
  std::vector<int> files_;
};

}  // namespace forebay::io
