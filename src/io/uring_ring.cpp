#include "io/uring_ring.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>
#include <sys/resource.h>

#include <forebay/base/error.hpp>

namespace forebay::io {
namespace {

constexpr byte_count largest_registered_part = 1_GiB;  // EFAULT above
constexpr std::size_t most_registered_parts = 16384;   // EINVAL above
constexpr byte_count locked_step = 128_KiB;            // how closely a limit on locked memory is used
constexpr unsigned entries_beside_depth = 2;           // the wake-up read, and one spare

// Younger headers have names for these; the kernel decides at run time.
constexpr std::array<unsigned, 4> setup_flags_best_first{
    IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
        IORING_SETUP_TASKRUN_FLAG,                                                                         // 6.1
    IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,  // 5.19
    IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL,                                                          // 5.18
    IORING_SETUP_CLAMP};

constexpr std::array<int, 7> needed_opcodes{IORING_OP_NOP,        IORING_OP_READ,        IORING_OP_WRITE,
                                            IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED, IORING_OP_READV,
                                            IORING_OP_WRITEV};

}  // namespace

uring_ring::~uring_ring() {
  if (!open_) {
    return;
  }
  unregister_buffers();
  if (!files_.empty()) {
    io_uring_unregister_files(&ring_);
  }
  io_uring_queue_exit(&ring_);
}

std::string uring_ring::open(unsigned depth) {
  if (const int refused = set_up(depth); refused != 0) {
    return describe_errno(refused);
  }
  open_ = true;
  return missing_service();
}

int uring_ring::set_up(unsigned depth) {
  int status = EINVAL;
  for (const unsigned flags : setup_flags_best_first) {
    io_uring_params params{};
    params.flags = flags;
    status = -io_uring_queue_init_params(depth + entries_beside_depth, &ring_, &params);
    if (status != EINVAL) {  // an unknown flag, and nothing else, is EINVAL
      break;
    }
  }
  return status;
}

/// A ring that was set up may still be useless: an old kernel, or a filter that lets only the set-up pass.
std::string uring_ring::missing_service() {
  constexpr unsigned needed_features = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;
  if ((ring_.features & needed_features) != needed_features) {
    return "the kernel's io_uring is too old (timed waits and lossless completions need Linux 5.11)";
  }
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  if (probe != nullptr) {
    const bool all = std::all_of(needed_opcodes.begin(), needed_opcodes.end(),
                                 [&](int opcode) { return io_uring_opcode_supported(probe, opcode) != 0; });
    io_uring_free_probe(probe);
    if (!all) {
      return "the kernel's io_uring lacks plain reads and writes";
    }
  }
  io_uring_sqe* sqe = next_sqe();
  io_uring_prep_nop(sqe);
  sqe->user_data = 0;
  constexpr int tries = 100;
  constexpr std::chrono::milliseconds patience{10};
  bool seen = false;
  int status = 0;
  for (int i = 0; i < tries && !seen; ++i) {
    status = submit_and_wait(std::chrono::steady_clock::now() + patience);
    if (status == EPERM || status == ENOSYS || status == EACCES) {
      break;
    }
    reap([&](std::uint64_t, int) { seen = true; });
  }
  return seen ? std::string() : fmt::format("no completion arrives: {}", describe_errno(status));
}

void uring_ring::unregister_buffers() noexcept {
  if (!buffers_.empty()) {
    io_uring_unregister_buffers(&ring_);
    buffers_.clear();
  }
}

/// Registers the first `bytes` of the ranges, in parts that the kernel takes: 0 or an errno.
int uring_ring::register_first(std::span<const std::span<std::byte>> ranges, byte_count bytes) {
  unregister_buffers();
  std::vector<registered_range> parts;
  for (const std::span<std::byte> range : ranges) {
    const byte_count wanted = std::min<byte_count>(range.size(), bytes);
    bytes -= wanted;
    for (byte_count at = 0; at < wanted; at += largest_registered_part) {
      parts.push_back({range.data() + at, std::min<byte_count>(largest_registered_part, wanted - at)});
    }
  }
  if (parts.empty()) {
    return 0;
  }
  std::sort(parts.begin(), parts.end(),
            [](const registered_range& a, const registered_range& b) { return a.begin < b.begin; });
  parts.resize(std::min(parts.size(), most_registered_parts));
  std::vector<iovec> vectors;
  vectors.reserve(parts.size());
  for (const registered_range& part : parts) {
    vectors.push_back({part.begin, part.bytes});
  }
  const int status = -io_uring_register_buffers(&ring_, vectors.data(), static_cast<unsigned>(vectors.size()));
  if (status == 0) {
    buffers_ = std::move(parts);
  }
  return status;
}

uring_ring::registration uring_ring::register_buffers(std::span<const std::span<std::byte>> ranges) {
  byte_count all = 0;
  for (const std::span<std::byte> range : ranges) {
    all += range.size();
  }
  registration result{register_first(ranges, all), 0};
  if (result.refusal == 0) {
    result.bytes = all;
    return result;
  }
  if (result.refusal != ENOMEM) {
    return result;
  }
  // The limit is on all locked pages of the user, of which others may hold some: bisect for what is left of it.
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  byte_count too_many = limit.rlim_cur < all ? align_up(limit.rlim_cur, locked_step) + locked_step : all;
  while (too_many - result.bytes > locked_step) {
    const byte_count half = align_down(result.bytes + (too_many - result.bytes) / 2, locked_step);
    (register_first(ranges, half) == 0 ? result.bytes : too_many) = half;
  }
  if (register_first(ranges, result.bytes) != 0) {
    result.bytes = 0;
  }
  return result;
}

int uring_ring::register_files(std::span<const int> files) {
  if (!files_.empty()) {
    io_uring_unregister_files(&ring_);
    files_.clear();
  }
  if (files.empty()) {
    return 0;
  }
  const int status = -io_uring_register_files(&ring_, files.data(), static_cast<unsigned>(files.size()));
  if (status == 0) {
    files_.assign(files.begin(), files.end());
  }
  return status;
}

int uring_ring::buffer_index(const std::byte* memory, byte_count bytes) const noexcept {
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), memory,
                                      [](const std::byte* at, const registered_range& r) { return at < r.begin; });
  if (after == buffers_.begin()) {
    return -1;
  }
  const auto range = std::prev(after);
  const auto start = static_cast<byte_count>(memory - range->begin);
  return start < range->bytes && bytes <= range->bytes - start ? static_cast<int>(range - buffers_.begin()) : -1;
}

int uring_ring::file_index(int file) const noexcept {
  const auto found = std::find(files_.begin(), files_.end(), file);
  return found == files_.end() ? -1 : static_cast<int>(found - files_.begin());
}

void uring_ring::prepare(const operation& first, const detail::piecework& work, std::uint64_t tag) noexcept {
  io_uring_sqe& sqe = *next_sqe();
  const interceptor::transfer start = work.piece(first);
  const bool is_read = start.kind == operation_kind::read;
  const int fixed_file = file_index(start.file);
  const int descriptor = fixed_file >= 0 ? fixed_file : start.file;
  const auto vectors =
      std::span(vectors_).subspan(turn_++ % prepared_at_most * detail::largest_run, detail::largest_run);
  const detail::memory_list memory = work.gather(first, vectors);
  const int fixed_buffer = memory.vectors > 1 ? -1 : buffer_index(start.memory, memory.bytes);
  const auto length = static_cast<unsigned>(memory.bytes);  // a piece is below the kernel's cap of 2 GiB
  const auto count = static_cast<unsigned>(memory.vectors);
  if (memory.vectors > 1) {
    (is_read ? io_uring_prep_readv(&sqe, descriptor, vectors.data(), count, start.offset)
             : io_uring_prep_writev(&sqe, descriptor, vectors.data(), count, start.offset));
  } else if (fixed_buffer >= 0) {
    (is_read ? io_uring_prep_read_fixed(&sqe, descriptor, start.memory, length, start.offset, fixed_buffer)
             : io_uring_prep_write_fixed(&sqe, descriptor, start.memory, length, start.offset, fixed_buffer));
  } else {
    (is_read ? io_uring_prep_read(&sqe, descriptor, start.memory, length, start.offset)
             : io_uring_prep_write(&sqe, descriptor, start.memory, length, start.offset));
  }
  if (fixed_file >= 0) {
    sqe.flags |= IOSQE_FIXED_FILE;
  }
  sqe.user_data = tag;
}

int uring_ring::submit_and_wait(time_point deadline) noexcept {
  io_uring_cqe* cqe = nullptr;
  if (deadline == time_point::max()) {
    const int status = io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, nullptr, nullptr);
    return status < 0 ? -status : 0;
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now());
  const std::int64_t nanoseconds = std::max<std::int64_t>(left.count(), 0);
  __kernel_timespec wait{};
  wait.tv_sec = nanoseconds / 1'000'000'000;
  wait.tv_nsec = nanoseconds % 1'000'000'000;
  const int status = io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, &wait, nullptr);
  return status < 0 ? -status : 0;
}

}  // namespace forebay::io
