#include "run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <forebay/base/error.hpp>
#include <string>
#include <system_error>

namespace train_gpt {
namespace fs = std::filesystem;
namespace {

constexpr const char* name_start = "forebay-run-";
constexpr std::size_t name_length = 18;  // and six letters

/// An open folder; -1 when it is none.
[[nodiscard]] int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

[[nodiscard]] bool try_lock(int folder) { return folder >= 0 && ::flock(folder, LOCK_EX | LOCK_NB) == 0; }

/// Whether the open folder is still the one with that name: another start may have removed it before it was locked.
[[nodiscard]] bool still_named(int folder, const fs::path& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(folder, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

[[nodiscard]] bool holds_only_storage(const fs::path& folder) {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().filename() != "storage") {
      return false;
    }
  }
  return !failure;
}

[[nodiscard]] bool belongs_to_us(int folder) {
  struct stat status {};
  return ::fstat(folder, &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

run_folder::run_folder(const fs::path& parent) {
  for (;;) {
    std::string name = (parent / (std::string(name_start) + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) {
      const int error_number = errno;
      throw forebay::io_error(fmt::format("no folder for this run can be made in {}: {}; name one with --storage",
                                          parent.string(), forebay::describe_errno(error_number)),
                              error_number);
    }
    path_ = name;
    lock_ = open_folder(path_);
    if (try_lock(lock_) && still_named(lock_, path_)) {
      return;
    }
    if (lock_ >= 0) {
      ::close(lock_);
    }
  }
}

run_folder::~run_folder() {
  std::error_code ignored;  // what is left is removed by the next run
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

std::vector<fs::path> remove_dead_run_folders(const fs::path& parent) {
  std::vector<fs::path> removed;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(name_start) || name.size() != name_length) {
      continue;
    }
    const int folder = open_folder(entry.path());
    if (folder < 0) {
      continue;
    }
    if (belongs_to_us(folder) && holds_only_storage(entry.path()) && try_lock(folder)) {
      std::error_code refused;
      fs::remove_all(entry.path(), refused);
      if (!refused) {
        removed.push_back(entry.path());
      }
    }
    ::close(folder);
  }
  return removed;
}

}  // namespace train_gpt
