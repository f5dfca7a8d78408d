#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <forebay/base/bytes.hpp>

namespace forebay::store_bench {

/// Anonymous memory at a huge page boundary, in huge pages where the system gives them.
class huge_memory {
 public:
  explicit huge_memory(byte_count bytes) : bytes_(align_up(bytes, 2_MiB)) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(2_MiB, bytes_)));
    ::madvise(memory_.get(), bytes_, MADV_HUGEPAGE);
    for (byte_count i = 0; i < bytes_; i += 4096) {
      memory_.get()[i] = static_cast<std::byte>(i >> 12U);
    }
  }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] byte_count size() const { return bytes_; }

 private:
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };
  byte_count bytes_;
  std::unique_ptr<std::byte, release> memory_;
};

/// What the drive gives to the shortest program that uses it well: one preallocated O_DIRECT file, one ring with a
/// registered buffer and a registered file, a fixed depth, no checks of the bytes.
class plain_ring {
 public:
  plain_ring(const std::filesystem::path& directory, byte_count file_bytes, const huge_memory& memory, unsigned depth)
      : path_(directory / "plain"), memory_(memory), depth_(depth) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    iovec whole{memory.data(), memory.size()};
    if (file_ < 0 || ::fallocate(file_, 0, 0, static_cast<off_t>(file_bytes)) != 0 ||
        io_uring_queue_init(depth, &ring_, 0) != 0 || io_uring_register_buffers(&ring_, &whole, 1) != 0 ||
        io_uring_register_files(&ring_, &file_, 1) != 0) {
      throw std::runtime_error("the plain ring cannot be set up in " + directory.string());
    }
  }
  ~plain_ring() {
    io_uring_unregister_buffers(&ring_);
    io_uring_queue_exit(&ring_);
    ::close(file_);
    ::unlink(path_.c_str());
  }
  plain_ring(const plain_ring&) = delete;
  plain_ring& operator=(const plain_ring&) = delete;

  /// Moves memory [0, bytes) to or from the start of the file, `block` bytes at a time.
  void move(bool reads, byte_count bytes, byte_count block) {
    byte_count submitted = 0;
    byte_count completed = 0;
    while (completed < bytes) {
      while (submitted < bytes && submitted - completed < depth_ * block) {
        io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
        if (sqe == nullptr) {
          break;
        }
        const auto length = static_cast<unsigned>(std::min(block, bytes - submitted));
        reads ? io_uring_prep_read_fixed(sqe, 0, memory_.data() + submitted, length, submitted, 0)
              : io_uring_prep_write_fixed(sqe, 0, memory_.data() + submitted, length, submitted, 0);
        sqe->flags |= IOSQE_FIXED_FILE;
        sqe->user_data = length;
        submitted += length;
      }
      io_uring_submit_and_wait(&ring_, 1);
      io_uring_cqe* cqe = nullptr;
      while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
        if (cqe->res != static_cast<int>(cqe->user_data)) {
          throw std::runtime_error("the plain ring got " + std::to_string(cqe->res));
        }
        completed += cqe->user_data;
        io_uring_cqe_seen(&ring_, cqe);
      }
    }
  }

 private:
  std::filesystem::path path_;
  const huge_memory& memory_;
  unsigned depth_;
  int file_ = -1;
  io_uring ring_{};
};

/// Processor time of this process so far, user and system, in seconds.
inline double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace forebay::store_bench
