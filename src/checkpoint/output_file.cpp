#include "checkpoint/detail/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::detail {

output_file::output_file(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  const bool special = ::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  if (!special) {
    open_temporary();
    return;
  }
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);  // renaming over a device or a pipe would destroy it
  if (fd_ < 0) {
    fail("open", errno);
  }
}

void output_file::open_temporary() {
  constexpr int attempts = 100;  // names that a killed process with our number left behind are passed over
  for (int attempt = 0; attempt < attempts; ++attempt) {
    temporary_ = fmt::format("{}.{}-{}.partial", path_.string(), ::getpid(), attempt);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ >= 0 || errno != EEXIST) {
      break;
    }
  }
  if (fd_ < 0) {
    const int code = errno;
    temporary_.clear();  // not ours to remove
    fail("create", code);
  }
}

output_file::~output_file() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void output_file::fail(const char* what, int error_number) const {
  throw io_error(
      fmt::format("can't {} '{}' after {} bytes: {}", what, path_.string(), written_, describe_errno(error_number)),
      error_number);
}

void output_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t result = ::write(fd_, bytes.data(), bytes.size());
    if (result < 0 && errno == EINTR) {
      continue;
    }
    if (result <= 0) {
      fail("write", result < 0 ? errno : 0);
    }
    written_ += static_cast<std::uint64_t>(result);
    bytes = bytes.subspan(static_cast<std::size_t>(result));
  }
}

void output_file::close() {
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 && errno != EINTR) {
    fail("close", errno);
  }
}

void output_file::commit() {
  // A pipe or a character device can't be synced (EINVAL), and need not be.
  if (::fsync(fd_) != 0 && !(temporary_.empty() && (errno == EINVAL || errno == EROFS))) {
    fail("sync", errno);
  }
  close();
  if (temporary_.empty()) {
    return;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("rename the finished file to", errno);
  }
  temporary_.clear();
  // The new name is durable only once its folder is; some file systems refuse that, which loses no contents.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  if (const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); directory >= 0) {
    const int result = ::fsync(directory) == 0 ? 0 : errno;
    ::close(directory);
    if (result != 0 && result != EINVAL) {
      fail("sync the folder of", result);
    }
  }
}

}  // namespace forebay::detail
