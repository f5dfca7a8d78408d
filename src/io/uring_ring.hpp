#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <liburing.h>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/io/detail/piecework.hpp>
#include <forebay/io/detail/request_queue.hpp>

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

  struct registration {
    int refusal = 0;       ///< errno of the attempt to register all of it
    byte_count bytes = 0;  ///< registered; after ENOMEM, about as much as the limit on locked memory allows
  };
  /// Takes the place of what was registered before.
  [[nodiscard]] registration register_buffers(std::span<const std::span<std::byte>> ranges);
  /// 0 or an errno; on failure no file stays registered.
  [[nodiscard]] int register_files(std::span<const int> files);

  [[nodiscard]] io_uring_sqe* next_sqe() noexcept { return io_uring_get_sqe(&ring_); }
  /// Whether `prepare` may be called before the next submission.
  [[nodiscard]] bool has_room() const noexcept {
    return io_uring_sq_space_left(&ring_) != 0 && io_uring_sq_ready(&ring_) < prepared_at_most;
  }
  /// Takes an entry for the run that starts with `first`, by registered memory and file where they are registered.
  /// There is room.
  void prepare(const operation& first, const detail::piecework& work, std::uint64_t tag) noexcept;

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
      each(std::uint64_t{cqe->user_data}, cqe->res);
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
      each(std::uint64_t{sq.sqes[i & sq.ring_mask].user_data});
    }
  }

 private:
  struct registered_range {
    std::byte* begin;
    byte_count bytes;
  };

  static constexpr std::size_t prepared_at_most = 128;

  [[nodiscard]] int register_first(std::span<const std::span<std::byte>> ranges, byte_count bytes);
  void unregister_buffers() noexcept;
  [[nodiscard]] int set_up(unsigned depth);
  [[nodiscard]] std::string missing_service();
  [[nodiscard]] int buffer_index(const std::byte* memory, byte_count bytes) const noexcept;
  [[nodiscard]] int file_index(int file) const noexcept;

  io_uring ring_{};
  bool open_ = false;
  std::vector<registered_range> buffers_;  // by address
  std::vector<int> files_;
  // Of the entries not submitted yet, `largest_run` each, in turn.
  std::vector<iovec> vectors_ = std::vector<iovec>(prepared_at_most * detail::largest_run);
  std::size_t turn_ = 0;
};

}  // namespace forebay::io
