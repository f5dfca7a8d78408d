#pragma once

#include <filesystem>
#include <memory>
#include <vector>

namespace train_gpt {

/// A fresh folder `forebay-run-XXXXXX` for one run's storage, removed with everything in it at the end. It is locked
/// while the run lives, so the next run tells the folder of a killed one from that of a live one.
class run_folder {
 public:
  /// \throws forebay::io_error (path, errno).
  explicit run_folder(const std::filesystem::path& parent);
  ~run_folder();
  run_folder(const run_folder&) = delete;
  run_folder& operator=(const run_folder&) = delete;

  /// Where the storage tier may live: a folder inside, so that its own lock and this one do not meet.
  [[nodiscard]] std::filesystem::path storage() const { return path_ / "storage"; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Removes the folders that killed runs left in `parent`: those that have the name, belong to this user, hold nothing
/// but a storage folder, and are not locked. Returns what was removed; what cannot be removed is left alone.
std::vector<std::filesystem::path> remove_dead_run_folders(const std::filesystem::path& parent);

}  // namespace train_gpt
