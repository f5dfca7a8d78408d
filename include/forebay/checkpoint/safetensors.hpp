#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/dtype.hpp>
#include <forebay/checkpoint/tensor_source.hpp>
#include <forebay/engine/engine.hpp>

namespace forebay {

/// Free text in a file's header ("__metadata__"), such as {"format", "pt"}.
using safetensors_metadata = std::map<std::string, std::string>;

/// Writes a .safetensors file (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length, a JSON
/// header padded with spaces to a multiple of 8, the contents in the given order without gaps. Memory: one buffer of at
/// most 1 MiB. The file appears under its name complete and on disk, or not at all: it is written beside it, synced,
/// renamed. (A target that is no regular file, such as a pipe, is written directly.)
/// \throws io_error (path, errno), usage_error (a name twice, not UTF-8 or "__metadata__"; a header above the format's
/// 100 MB), and whatever a source throws.
void export_safetensors(const std::filesystem::path& path, std::span<const tensor_source> tensors,
                        const safetensors_metadata& metadata = {});
/// The same from an engine.
void export_safetensors(const std::filesystem::path& path, engine& from, std::span<const tensor_id> tensors,
                        const safetensors_metadata& metadata = {});

/// One tensor of a file.
struct safetensors_entry {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::uint64_t> shape;
  byte_count offset = 0;  ///< in the file
  byte_count bytes = 0;
};

/// An open .safetensors file. The header is validated when it is opened: the entries are contiguous, in bounds, do not
/// overlap, fill the file, and have the lengths that their dtypes and shapes say. Immutable; reads are thread-safe.
class safetensors_file {
 public:
  /// \throws io_error (path, errno), corruption_error (path, what is wrong), unsupported_error (a dtype that forebay
  /// has no name for).
  explicit safetensors_file(const std::filesystem::path& path);
  ~safetensors_file();
  safetensors_file(safetensors_file&&) noexcept;
  safetensors_file& operator=(safetensors_file&&) noexcept;

  /// In the order of their contents in the file.
  [[nodiscard]] const std::vector<safetensors_entry>& entries() const noexcept;
  [[nodiscard]] const safetensors_metadata& metadata() const noexcept;
  /// Null when there is none of that name.
  [[nodiscard]] const safetensors_entry* find(const std::string& name) const noexcept;

  /// Fills `out` with the entry's contents from byte `offset` on. \throws io_error, usage_error (out of range).
  void read(const safetensors_entry& entry, byte_count offset, std::span<std::byte> out) const;
  /// The entry as something to export or digest; the file must outlive it.
  [[nodiscard]] tensor_source source(const safetensors_entry& entry) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Sets the tensors' contents from the entries of the same names, streamed with a buffer of at most 1 MiB. Other
/// entries of the file are ignored. Everything is checked before the first tensor is written. \throws error naming the
/// tensor and both sides when the file lacks it or has another dtype or shape; else as safetensors_file and
/// engine::write.
void import_safetensors(const std::filesystem::path& path, engine& into, std::span<const tensor_id> tensors);

}  // namespace forebay
