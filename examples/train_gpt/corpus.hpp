#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "tensors.hpp"

namespace train_gpt {

/// The training text: the bytes of files, one after another. Only their names and sizes are held; windows are read when
/// they are needed. Immutable after construction; reads are thread-safe.
class corpus {
 public:
  /// Files as they are; folders with all regular files below them, sorted by path. \throws forebay::usage_error when a
  /// path does not exist, forebay::io_error when one cannot be read.
  explicit corpus(const std::vector<std::filesystem::path>& sources);

  [[nodiscard]] std::uint64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] std::size_t files() const { return files_.size(); }

  /// Fills `out` from byte `offset` of the text on. \throws forebay::io_error (path, errno), also when a file has
  /// become shorter.
  void read(std::uint64_t offset, std::span<std::uint8_t> out) const;

  /// \throws forebay::usage_error when the text is shorter than one sequence and its last target.
  void check_holds(std::size_t context) const;
  /// The bytes of one micro-batch: `batch` windows of context + 1 bytes at places that depend on the seed, the step and
  /// the micro-batch only. `out` has `shape.token_bytes()` bytes.
  void sample(const model_shape& shape, std::uint64_t seed, std::uint64_t step, std::uint64_t micro_batch,
              std::span<std::uint8_t> out) const;

 private:
  void add_file(const std::filesystem::path& file);
  void add_folder(const std::filesystem::path& folder);

  std::vector<std::filesystem::path> files_;  ///< none is empty
  std::vector<std::uint64_t> ends_;           ///< where each file's bytes end in the text
};

/// Text that is there wherever a C++ compiler is: the folder of the C++ headers that it installed, looked for below
/// `root` (the file system's, but for tests). \throws forebay::error naming the places when there is none.
[[nodiscard]] std::filesystem::path default_text(const std::filesystem::path& root = "/");

}  // namespace train_gpt
