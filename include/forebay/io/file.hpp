#pragma once

#include <filesystem>
#include <string>

#include <forebay/base/bytes.hpp>

namespace forebay::io {

/// What the file system asks of direct transfers.
struct geometry {
  bool direct = false;  ///< O_DIRECT is in use; otherwise buffered, and any alignment will do
  byte_count memory_alignment = 1;
  byte_count offset_alignment = 1;  ///< of offsets and lengths
  std::string degradation;          ///< why not direct; empty when it is
};

/// An open file that is read and written with O_DIRECT where the file system allows. Created with mode 0600, never
/// through a symbolic link. Move-only; closes in the destructor.
class direct_file {
 public:
  /// Creates (exclusively) or opens. Alignment from STATX_DIOALIGN, else probed by trial. \throws io_error with the
  /// path.
  [[nodiscard]] static direct_file create(const std::filesystem::path& path, bool want_direct = true);

  direct_file(direct_file&& other) noexcept;
  direct_file& operator=(direct_file&& other) noexcept;
  ~direct_file();

  /// Gives the file `bytes` of disk space now, so that a full disk is found before the run.
  /// \throws capacity_error naming path, needed and free bytes; a partial allocation is given back. File systems that
  /// do not preallocate are compared by their free bytes and extended sparsely.
  void preallocate(byte_count bytes);

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const geometry& layout() const noexcept { return geometry_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  direct_file() = default;

  int descriptor_ = -1;
  geometry geometry_;
  std::filesystem::path path_;
};

}  // namespace forebay::io
