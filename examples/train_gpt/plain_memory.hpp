#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "model.hpp"

namespace train_gpt {

/// Zeroed bytes on a 64-byte boundary; many of them on huge pages where the system has some to give, as the engine's
/// tiers are, so that the two can be compared.
class aligned_bytes {
 public:
  explicit aligned_bytes(std::size_t bytes);

  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), bytes_}; }

 private:
  struct deleter {
    std::align_val_t alignment;
    void operator()(std::byte* p) const noexcept { ::operator delete[](p, alignment); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], deleter> data_;
};

/// Cuts memory into pieces of the given sizes, each on a 64-byte boundary.
class pieces {
 public:
  explicit pieces(const std::vector<std::size_t>& sizes);

  template <typename Element>
  [[nodiscard]] std::span<Element> of(std::size_t piece) {
    const std::span<std::byte> bytes = memory_.span().subspan(offsets_[piece], sizes_[piece]);
    return {reinterpret_cast<Element*>(bytes.data()), bytes.size() / sizeof(Element)};
  }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> offsets_;  ///< and the end of the last
  aligned_bytes memory_;
};

/// All tensors of a model in plain memory, and one workspace for all its steps: everything resident, no engine.
template <typename T>
class plain_memory {
 public:
  explicit plain_memory(const model<T>& of);

  template <typename Element>
  [[nodiscard]] std::span<Element> of(tensor_index tensor) {
    return tensors_.template of<Element>(tensor);
  }
  /// Runs one step on the calling thread.
  void run(const model_step& step);

 private:
  pieces tensors_;
  aligned_bytes workspace_;
};

}  // namespace train_gpt
