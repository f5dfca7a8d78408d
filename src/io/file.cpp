#include <forebay/io/file.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <forebay/base/error.hpp>

namespace forebay::io {
namespace {

constexpr std::array<byte_count, 4> trial_alignments{512, 4096, 16384, 65536};
constexpr byte_count usual_alignment = 4096;

struct free_deleter {
  void operator()(void* p) const noexcept { std::free(p); }
};

io_error file_failure(const char* what, const std::filesystem::path& path, int error_number) {
  return {fmt::format("cannot {} {}: {}", what, path.string(), describe_errno(error_number)), error_number};
}

struct opened {
  int descriptor = -1;
  int error_number = 0;
  bool fresh = false;
};

/// A new file if there is none of that name (so that the trial writes below harm nobody), else the old one.
opened open_file(const std::filesystem::path& path, int extra_flags) {
  constexpr mode_t owner_only = 0600;
  const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | extra_flags;
  for (;;) {
    int descriptor = ::open(path.c_str(), flags | O_CREAT | O_EXCL, owner_only);
    if (descriptor >= 0) {
      return {descriptor, 0, true};
    }
    if (errno == EEXIST) {
      descriptor = ::open(path.c_str(), flags);
      if (descriptor >= 0) {
        return {descriptor, 0, false};
      }
    }
    if (errno != EINTR) {
      return {-1, errno, false};
    }
  }
}

struct alignments {
  byte_count memory = 0;  // 0: not known, or no direct transfers
  byte_count offset = 0;
  bool told = false;
};

/// STATX_DIOALIGN, by its place in the kernel's interface: older C libraries have no names for it.
alignments ask_alignments(int descriptor) {
  constexpr unsigned mask_dioalign = 0x2000U;
  constexpr std::size_t memory_at = 0x98;
  constexpr std::size_t offset_at = 0x9c;
  struct statx answer {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, mask_dioalign, &answer) != 0 || (answer.stx_mask & mask_dioalign) == 0) {
    return {};
  }
  std::array<std::byte, sizeof answer> raw{};
  std::memcpy(raw.data(), &answer, sizeof answer);
  std::uint32_t memory = 0;
  std::uint32_t offset = 0;
  std::memcpy(&memory, raw.data() + memory_at, sizeof memory);
  std::memcpy(&offset, raw.data() + offset_at, sizeof offset);
  return {memory, offset, true};
}

/// One direct transfer at exactly this alignment and no coarser one: 0 or the errno.
int try_alignment(int descriptor, byte_count alignment, bool may_write) {
  const std::unique_ptr<void, free_deleter> room(std::aligned_alloc(2 * alignment, 4 * alignment));
  if (room == nullptr) {
    return ENOMEM;
  }
  auto* memory = static_cast<std::byte*>(room.get()) + alignment;
  std::memset(memory, 0, alignment);
  const auto at = static_cast<off_t>(alignment);
  if (may_write && ::pwrite(descriptor, memory, alignment, at) < 0) {
    return errno;
  }
  return ::pread(descriptor, memory, alignment, at) < 0 ? errno : 0;
}

/// The least alignment that works at and above `least`, or the errno of the last refusal.
std::pair<byte_count, int> probe_alignment(int descriptor, byte_count least, bool may_write) {
  int refused = EINVAL;
  for (const byte_count alignment : trial_alignments) {
    if (alignment < least) {
      continue;
    }
    refused = try_alignment(descriptor, alignment, may_write);
    if (refused == 0) {
      return {alignment, 0};
    }
    if (refused == ENOSPC || refused == EDQUOT || refused == EFBIG) {
      return {std::max(least, usual_alignment), 0};  // no room to try it; what it lacks will be found by preallocate
    }
  }
  return {0, refused};
}

/// What this open, O_DIRECT descriptor can do. A file system may take the flag and refuse the first transfer.
geometry direct_geometry(int descriptor, bool fresh) {
  const alignments told = ask_alignments(descriptor);
  if (told.told && (told.memory == 0 || told.offset == 0)) {
    return {false, 1, 1, "the file system says that it does no direct transfers"};
  }
  const byte_count least = std::max(told.memory, told.offset);
  const auto [works, refused] = probe_alignment(descriptor, std::min(least, trial_alignments.back()), fresh);
  if (fresh && ::ftruncate(descriptor, 0) != 0) {
    return {false, 1, 1, "truncate after the trial: " + describe_errno(errno)};
  }
  if (works == 0) {
    return {false, 1, 1, "direct transfers are refused: " + describe_errno(refused)};
  }
  // What the file system tells holds where its own alignment worked; otherwise what the trial found.
  const bool as_told = told.told && works <= std::max(least, trial_alignments.front());
  return {true, as_told ? told.memory : works, as_told ? told.offset : works, {}};
}

byte_count free_space(int descriptor) {
  struct statvfs space {};
  return ::fstatvfs(descriptor, &space) == 0 ? byte_count{space.f_bavail} * space.f_frsize : ~byte_count{0};
}

}  // namespace

direct_file direct_file::create(const std::filesystem::path& path, bool want_direct) {
  direct_file file;
  file.path_ = path;
  opened result;
  if (want_direct) {
    result = open_file(path, O_DIRECT);
    if (result.descriptor < 0 && result.error_number == EINVAL) {
      file.geometry_.degradation = "O_DIRECT is refused at open: " + describe_errno(result.error_number);
    }
  }
  const bool direct = result.descriptor >= 0;
  if (!direct && (!want_direct || result.error_number == EINVAL)) {
    result = open_file(path, 0);
  }
  if (result.descriptor < 0) {
    throw file_failure("open", path, result.error_number);
  }
  file.descriptor_ = result.descriptor;
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0) {
    throw file_failure("inspect", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw io_error(fmt::format("{} is not a regular file", path.string()), EINVAL);
  }
  if (direct) {
    file.geometry_ = direct_geometry(file.descriptor_, result.fresh);
    if (!file.geometry_.direct) {
      ::fcntl(file.descriptor_, F_SETFL, ::fcntl(file.descriptor_, F_GETFL) & ~O_DIRECT);
    }
  } else if (!want_direct) {
    file.geometry_.degradation = "buffered as asked";
  }
  if (!file.geometry_.direct) {
    file.geometry_.degradation = fmt::format("{}: {}; buffered instead", path.string(), file.geometry_.degradation);
  }
  return file;
}

direct_file::direct_file(direct_file&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      geometry_(std::move(other.geometry_)),
      path_(std::move(other.path_)) {}

direct_file& direct_file::operator=(direct_file&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
    descriptor_ = std::exchange(other.descriptor_, -1);
    geometry_ = std::move(other.geometry_);
    path_ = std::move(other.path_);
  }
  return *this;
}

direct_file::~direct_file() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void direct_file::preallocate(byte_count bytes) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    throw file_failure("inspect", path_, errno);
  }
  const auto old_size = static_cast<byte_count>(status.st_size);
  if (bytes <= old_size) {
    return;
  }
  const byte_count needed = bytes - old_size;
  const auto too_small = [&](int error_number) {
    return capacity_error(fmt::format(
        "{}: {} more are needed and {} are free ({}); free space there, or lower the "
        "storage capacity",
        path_.string(), format_bytes(needed), format_bytes(free_space(descriptor_)), describe_errno(error_number)));
  };
  if (needed > free_space(descriptor_)) {
    throw too_small(ENOSPC);
  }
  int status_code = 0;
  do {
    status_code =
        ::fallocate(descriptor_, 0, static_cast<off_t>(old_size), static_cast<off_t>(needed)) == 0 ? 0 : errno;
  } while (status_code == EINTR);
  if (status_code == 0) {
    return;
  }
  if (status_code == EOPNOTSUPP || status_code == ENOSYS) {
    status_code = ::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    if (status_code == 0) {
      return;
    }
  }
  // A failed fallocate keeps what it got.
  if (::ftruncate(descriptor_, static_cast<off_t>(old_size)) != 0) {
    throw file_failure("give back space of", path_, errno);
  }
  if (status_code == ENOSPC || status_code == EDQUOT || status_code == EFBIG) {
    throw too_small(status_code);
  }
  throw file_failure("preallocate", path_, status_code);
}

}  // namespace forebay::io
