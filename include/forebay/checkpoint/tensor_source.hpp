#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/dtype.hpp>
#include <forebay/engine/engine.hpp>

namespace forebay {

/// A named tensor whose contents can be asked for piece by piece: what exports and digests read. Exactly one read runs
/// at a time, pieces come in ascending order without gaps.
struct tensor_source {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::uint64_t> shape;  ///< empty: one element
  /// Fills `out` with the contents from byte `offset` on. What it throws goes through to the caller.
  std::function<void(byte_count offset, std::span<std::byte> out)> read;

  /// \throws usage_error naming the tensor when the size does not fit 64 bits.
  [[nodiscard]] byte_count bytes() const;
};

/// Contents in plain memory, which must outlive the source.
/// \throws usage_error when `contents` is not as long as type and shape say.
[[nodiscard]] tensor_source memory_source(std::string name, dtype type, std::vector<std::uint64_t> shape,
                                          std::span<const std::byte> contents);

/// A tensor of an engine, wherever it lives; the engine must outlive the source.
[[nodiscard]] tensor_source engine_source(engine& from, tensor_id tensor);
[[nodiscard]] std::vector<tensor_source> engine_sources(engine& from, std::span<const tensor_id> tensors);

}  // namespace forebay
