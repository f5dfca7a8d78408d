#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "model.hpp"

namespace train_gpt {

/// Zeroed bytes on a 64-byte boundary.
class aligned_bytes {
 public:
  explicit aligned_bytes(std::size_t bytes);

  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), bytes_}; }

 private:
  struct deleter {
    void operator()(std::byte* p) const noexcept { ::operator delete[](p, std::align_val_t{scratch_alignment}); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], deleter> data_;
};

/// All tensors of a model in plain memory, and one workspace for all its steps: everything resident, no engine.
template <typename T>
class plain_memory {
 public:
  explicit plain_memory(const model<T>& of);

  template <typename Element>
  [[nodiscard]] std::span<Element> of(tensor_index tensor) {
    const std::span<std::byte> bytes = tensors_[tensor].span();
    return {reinterpret_cast<Element*>(bytes.data()), bytes.size() / sizeof(Element)};
  }
  /// Runs one step on the calling thread.
  void run(const model_step& step);

 private:
  std::vector<aligned_bytes> tensors_;
  aligned_bytes workspace_;
};

}  // namespace train_gpt
