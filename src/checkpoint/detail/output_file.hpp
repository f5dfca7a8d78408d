#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace forebay::detail {

/// A file that appears under its name complete and on disk, or not at all.
class output_file {
 public:
  /// Opens a temporary file beside `path`, or `path` itself when that is no regular file. \throws io_error
  explicit output_file(const std::filesystem::path& path);
  /// Removes what was not committed.
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  /// Writes all of it, however the kernel splits it. \throws io_error with the path, the bytes and the errno
  void write(std::span<const std::byte> bytes);
  /// Syncs, renames, syncs the folder. \throws io_error
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error_number) const;
  void open_temporary();
  void close();

  std::filesystem::path path_;
  std::string temporary_;  // empty: the target itself is written
  int fd_ = -1;
  std::uint64_t written_ = 0;
};

}  // namespace forebay::detail
