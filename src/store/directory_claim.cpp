#include "store/directory_claim.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <forebay/base/error.hpp>

namespace forebay::store_detail {
namespace {

constexpr std::string_view lock_name = "forebay.lock";
constexpr std::string_view file_prefix = "forebay-";
constexpr std::string_view file_suffix = ".pages";

io_error failure(const char* what, const std::filesystem::path& path, int error_number) {
  return {fmt::format("cannot {} {}: {}", what, path.string(), describe_errno(error_number)), error_number};
}

/// forebay-<digits and dashes>.pages: a name that only the store gives.
bool is_data_file_name(std::string_view name) {
  if (name.size() <= file_prefix.size() + file_suffix.size() || name.substr(0, file_prefix.size()) != file_prefix ||
      name.substr(name.size() - file_suffix.size()) != file_suffix) {
    return false;
  }
  name.remove_prefix(file_prefix.size());
  name.remove_suffix(file_suffix.size());
  return name.find_first_not_of("0123456789-") == std::string_view::npos;
}

std::string holder_of(int lock_fd) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(lock_fd, text.data(), text.size() - 1, 0);
  std::string pid;
  for (ssize_t i = 0; i < n && std::isdigit(static_cast<unsigned char>(text.at(static_cast<std::size_t>(i)))) != 0;
       ++i) {
    pid.push_back(text.at(static_cast<std::size_t>(i)));
  }
  return pid.empty() ? std::string("another process") : "process " + pid;
}

/// False when the name has gone, or stands for another file than the one that is open.
bool still_named(int fd, const std::filesystem::path& path) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(fd, &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

}  // namespace

directory_claim::directory_claim(const std::filesystem::path& directory)
    : directory_(std::filesystem::absolute(directory).lexically_normal()) {
  // An engine that ends removes its lock file, and perhaps the directory, between two of our calls: start again then.
  do {
    create();
  } while (!lock());
  write_holder();
  remove_dead_files();
}

directory_claim::directory_claim(directory_claim&& other) noexcept
    : directory_(std::move(other.directory_)),
      created_(std::move(other.created_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      degradations_(std::move(other.degradations_)) {}

directory_claim::~directory_claim() {
  if (lock_fd_ < 0) {
    return;
  }
  // Unlinked while still locked: who waits on the old file sees that its name has gone.
  ::unlink((directory_ / lock_name).c_str());
  ::close(lock_fd_);
  while (!created_.empty() && ::rmdir(created_.back().c_str()) == 0) {
    created_.pop_back();
  }
}

void directory_claim::create() {
  constexpr mode_t owner_only = 0700;
  std::filesystem::path partial;
  for (const std::filesystem::path& part : directory_) {
    partial /= part;
    if (part.empty()) {
      continue;  // a trailing slash
    }
    if (::mkdir(partial.c_str(), owner_only) == 0) {
      created_.push_back(partial);
      continue;
    }
    const int refused = errno;
    struct stat status {};
    if (::stat(partial.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      throw failure("create the storage directory", partial, refused == EEXIST ? ENOTDIR : refused);
    }
  }
}

bool directory_claim::lock() {
  const std::filesystem::path path = directory_ / lock_name;
  constexpr mode_t owner_only = 0600;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, owner_only);
  if (fd < 0) {
    if (errno == ENOENT || errno == EINTR) {
      return false;
    }
    throw failure("open the lock file", path, errno);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int refused = errno;
    const std::string holder = holder_of(fd);
    const bool named = still_named(fd, path);
    ::close(fd);
    if (refused == EINTR || (refused == EWOULDBLOCK && !named)) {
      return false;
    }
    if (refused == EWOULDBLOCK) {
      throw usage_error(
          fmt::format("the storage directory {} is in use by the engine of {} (or of a child that it forked); give "
                      "every engine a directory of its own",
                      directory_.string(), holder));
    }
    throw failure("lock", path, refused);
  }
  if (!still_named(fd, path)) {
    ::close(fd);
    return false;
  }
  lock_fd_ = fd;
  return true;
}

void directory_claim::write_holder() const {
  const std::string pid = fmt::format("{}\n", ::getpid());
  // Only for messages, so a full disk does no harm here.
  if (::ftruncate(lock_fd_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(lock_fd_, pid.data(), pid.size(), 0);
  }
}

void directory_claim::remove_dead_files() {
  std::error_code listing;
  for (std::filesystem::directory_iterator it(directory_, listing), end; !listing && it != end; it.increment(listing)) {
    const std::filesystem::path& path = it->path();
    std::error_code unknown;
    if (!is_data_file_name(path.filename().native()) ||
        it->symlink_status(unknown).type() != std::filesystem::file_type::regular) {
      continue;
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      degradations_.push_back(
          fmt::format("{}, left by a run that died, cannot be removed: {}", path.string(), describe_errno(errno)));
    }
  }
  if (listing) {
    degradations_.push_back(
        fmt::format("{} cannot be searched for files of dead runs: {}", directory_.string(), listing.message()));
  }
}

std::filesystem::path directory_claim::fresh_file_name() const {
  for (unsigned n = 0;; ++n) {
    std::filesystem::path path = directory_ / fmt::format("{}{}-{}{}", file_prefix, ::getpid(), n, file_suffix);
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      return path;
    }
  }
}

}  // namespace forebay::store_detail
