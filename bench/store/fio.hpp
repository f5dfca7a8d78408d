#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "measure.hpp"
#include "plain_ring.hpp"
#include "settings.hpp"
#include "workload.hpp"

namespace forebay::store_bench {

/// The installed fio, told to do what the reference does: io_uring, O_DIRECT, registered buffers and files, the same
/// block and depth, every block of the same bytes once, in random order, over a file that was written before. Its
/// buffers are on base pages unless the system gives huge ones to all, which costs it CPU.
class fio {
 public:
  /// Lays the files out. \throws unsupported_error when there is no fio, error with its exit status when it fails.
  explicit fio(const settings& s);
  ~fio();
  fio(const fio&) = delete;
  fio& operator=(const fio&) = delete;

  /// One pass; its own time and CPU time, without its start. \throws error
  [[nodiscard]] cost run(mode m, const ring_shape& shape);

 private:
  void remove_files() noexcept;
  [[nodiscard]] cost run(const std::vector<std::string>& arguments, const ring_shape& shape);

  byte_count size_;
  unsigned read_percent_;
  std::vector<std::filesystem::path> files_;
  std::filesystem::path output_;
};

}  // namespace forebay::store_bench
