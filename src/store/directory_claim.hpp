#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace forebay::store_detail {

/// The exclusive right to a storage directory: created where missing, locked (flock) against other live engines, and
/// cleared of the files that dead runs left. The kernel gives the lock back however the process ends.
class directory_claim {
 public:
  /// \throws io_error (path, errno); usage_error naming the directory and the holder when another engine lives there.
  explicit directory_claim(const std::filesystem::path& directory);
  directory_claim(directory_claim&& other) noexcept;
  directory_claim& operator=(directory_claim&&) = delete;
  /// Removes the lock file, and the directories that the constructor made, where they are empty.
  ~directory_claim();

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  /// A name for a data file that no file in the directory has.
  [[nodiscard]] std::filesystem::path fresh_file_name() const;
  /// What could not be done, one sentence each.
  [[nodiscard]] const std::vector<std::string>& degradations() const noexcept { return degradations_; }

 private:
  void create();
  [[nodiscard]] bool lock();
  void write_holder() const;
  void remove_dead_files();

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> created_;  // innermost last
  int lock_fd_ = -1;
  std::vector<std::string> degradations_;
};

}  // namespace forebay::store_detail
