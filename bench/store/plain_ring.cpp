#include "plain_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace forebay::store_bench {
namespace {

constexpr byte_count largest_registered = 1_GiB;  // the kernel's limit for one buffer

[[noreturn]] void fail(const std::string& what, int error_number) {
  throw std::runtime_error("the reference ring: " + what + ": " + std::strerror(error_number));
}

void check(const std::string& what, int negative_errno) {
  if (negative_errno < 0) {
    fail(what, -negative_errno);
  }
}

}  // namespace

plain_ring::plain_ring(const std::vector<std::filesystem::path>& directories, std::span<std::byte> memory,
                       unsigned most_in_flight)
    : memory_(memory) {
  try {
    open_files(directories, memory.size());
    open_ring(memory, most_in_flight);
  } catch (...) {
    close();
    throw;
  }
}

plain_ring::~plain_ring() { close(); }

void plain_ring::close() noexcept {
  if (open_) {
    io_uring_unregister_buffers(&ring_);
    io_uring_queue_exit(&ring_);
  }
  for (const int file : files_) {
    ::close(file);
  }
  for (const std::filesystem::path& name : names_) {
    ::unlink(name.c_str());
  }
}

void plain_ring::open_files(const std::vector<std::filesystem::path>& directories, byte_count bytes) {
  // With several paths each gets its share in blocks of any size, so a block more than the quotient.
  const byte_count each = directories.size() == 1 ? bytes : bytes / directories.size() + 4_MiB;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    const std::filesystem::path name =
        directories[i] / ("bench-reference-" + std::to_string(::getpid()) + "-" + std::to_string(i));
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int file = ::open(name.c_str(), flags | O_DIRECT, 0600);
    if (file < 0 && errno == EINVAL) {
      direct_ = false;
      ::unlink(name.c_str());
      file = ::open(name.c_str(), flags, 0600);
    }
    if (file < 0) {
      fail(name.string(), errno);
    }
    files_.push_back(file);
    names_.push_back(name);
    if (const int refused = ::posix_fallocate(file, 0, static_cast<off_t>(each)); refused != 0) {
      fail("preallocating " + name.string(), refused);
    }
  }
}

void plain_ring::open_ring(std::span<std::byte> memory, unsigned entries) {
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  int status = io_uring_queue_init_params(entries, &ring_, &params);
  if (status == -EINVAL) {  // before Linux 6.1
    params = {};
    status = io_uring_queue_init_params(entries, &ring_, &params);
  }
  check("set-up", status);
  open_ = true;
  std::vector<iovec> parts;
  for (byte_count at = 0; at < memory.size(); at += largest_registered) {
    parts.push_back({memory.data() + at, std::min<byte_count>(largest_registered, memory.size() - at)});
  }
  check("registering the memory", io_uring_register_buffers(&ring_, parts.data(), static_cast<unsigned>(parts.size())));
  check("registering the files", io_uring_register_files(&ring_, files_.data(), static_cast<unsigned>(files_.size())));
}

void plain_ring::prepare(io_uring_sqe& sqe, const piece& p, byte_count block) const {
  const byte_count index = p.offset / block;
  const auto file = static_cast<int>(index % files_.size());
  const byte_count at = index / files_.size() * block + p.offset % block;
  const auto buffer = static_cast<int>(p.offset / largest_registered);
  const auto length = static_cast<unsigned>(p.bytes);
  p.reads ? io_uring_prep_read_fixed(&sqe, file, memory_.data() + p.offset, length, at, buffer)
          : io_uring_prep_write_fixed(&sqe, file, memory_.data() + p.offset, length, at, buffer);
  sqe.flags |= IOSQE_FIXED_FILE;
  sqe.user_data = length;
}

unsigned plain_ring::reap() {
  unsigned count = 0;
  unsigned head = 0;
  io_uring_cqe* cqe = nullptr;
  int failure = 0;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    if (cqe->res != static_cast<int>(cqe->user_data)) {
      failure = cqe->res < 0 ? -cqe->res : EIO;
    }
    ++count;
  }
  io_uring_cq_advance(&ring_, count);
  if (failure != 0) {
    fail("a transfer", failure);
  }
  return count;
}

void plain_ring::run(std::span<const piece> pieces, const ring_shape& shape) {
  const std::size_t most = shape.depth * files_.size();
  std::size_t next = 0;
  std::size_t in_flight = 0;
  while (next < pieces.size() || in_flight > 0) {
    while (next < pieces.size() && in_flight < most) {
      io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
      if (sqe == nullptr) {
        break;
      }
      prepare(*sqe, pieces[next], shape.block);
      ++next;
      ++in_flight;
    }
    const int status = io_uring_submit_and_wait(&ring_, 1);
    if (status < 0 && status != -EINTR && status != -EAGAIN && status != -EBUSY) {
      fail("submission", -status);
    }
    in_flight -= reap();
  }
}

}  // namespace forebay::store_bench
