#pragma once

#include <memory>
#include <span>
#include <string>

#include <forebay/checkpoint/tensor_source.hpp>
#include <forebay/engine/engine.hpp>

namespace forebay {

/// A fingerprint of tensors in a given order: equal when and (but for a chance of 2^-128) only when names, dtypes,
/// shapes and contents are equal bit by bit, wherever the contents live and however they are split.
///
/// It is XXH3-128 (seed 0) over, for each tensor in order, all integers being 8 bytes little-endian:
///   length of the name in bytes, the name,
///   length of the dtype's name in bytes, the dtype's name (as `to_string`: "F32", "BF16", ...),
///   number of dimensions, each dimension,
///   number of bytes of the contents, the contents (elements little-endian, row-major).
class tensor_digest {
 public:
  tensor_digest();
  ~tensor_digest();
  tensor_digest(tensor_digest&&) noexcept;
  tensor_digest& operator=(tensor_digest&&) noexcept;

  /// Reads the whole tensor, with a buffer of at most 1 MiB. What the source throws goes through; the digest is then
  /// of no use any more.
  void add(const tensor_source& tensor);
  /// 32 lower-case hex digits, most significant first, as `xxhsum -H2` prints them.
  [[nodiscard]] std::string hex() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

[[nodiscard]] std::string digest(std::span<const tensor_source> tensors);
[[nodiscard]] std::string digest(engine& from, std::span<const tensor_id> tensors);

}  // namespace forebay
