#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include <liburing.h>

#include <forebay/base/bytes.hpp>

#include "workload.hpp"

namespace forebay::store_bench {

/// How the reference moves bytes.
struct ring_shape {
  byte_count block = 1_MiB;
  unsigned depth = 16;  ///< per path
};

/// What the drive gives to the shortest program that uses it well: one preallocated O_DIRECT file per path, one ring
/// that belongs to the calling thread, registered buffers and files, a fixed depth, no look at the bytes. Offset x of
/// the memory lies at x on the only path; with several, block i lies on path i mod paths. Used by one thread.
class plain_ring {
 public:
  /// \throws std::runtime_error with what failed when it can't be set up.
  plain_ring(const std::vector<std::filesystem::path>& directories, std::span<std::byte> memory,
             unsigned most_in_flight);
  ~plain_ring();
  plain_ring(const plain_ring&) = delete;
  plain_ring& operator=(const plain_ring&) = delete;

  /// Moves the pieces, each of at most a block and none across a multiple of it. \throws std::runtime_error when a
  /// transfer fails or is short.
  void run(std::span<const piece> pieces, const ring_shape& shape);

  [[nodiscard]] bool direct() const { return direct_; }

 private:
  void open_files(const std::vector<std::filesystem::path>& directories, byte_count bytes);
  void open_ring(std::span<std::byte> memory, unsigned entries);
  void close() noexcept;
  void prepare(io_uring_sqe& sqe, const piece& p, byte_count block) const;
  unsigned reap();

  std::span<std::byte> memory_;
  std::vector<std::filesystem::path> names_;
  std::vector<int> files_;
  bool direct_ = true;
  bool open_ = false;
  io_uring ring_{};
};

}  // namespace forebay::store_bench
