#include "plain_memory.hpp"

#include <algorithm>
#include <cstring>

#include "parallel.hpp"

namespace train_gpt {
namespace {

[[nodiscard]] std::size_t largest_workspace(const std::vector<model_step>& steps) {
  std::size_t largest = 0;
  for (const model_step& step : steps) {
    largest = std::max(largest, step.workspace);
  }
  return largest;
}

}  // namespace

aligned_bytes::aligned_bytes(std::size_t bytes)
    : bytes_(bytes), data_(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{scratch_alignment}))) {
  std::memset(data_.get(), 0, bytes);
}

template <typename T>
plain_memory<T>::plain_memory(const model<T>& of) : workspace_(largest_workspace(of.steps())) {
  tensors_.reserve(of.tensors().specs().size());
  for (const forebay::tensor_spec& spec : of.tensors().specs()) {
    tensors_.emplace_back(spec.bytes());
  }
}

template <typename T>
void plain_memory<T>::run(const model_step& step) {
  prepare_compute_thread();
  std::vector<std::span<std::byte>> buffers;
  buffers.reserve(step.accesses.size());
  for (const model_access& access : step.accesses) {
    buffers.push_back(tensors_[access.tensor].span());
  }
  step.run(step_memory(step.accesses, buffers, workspace_.span().first(step.workspace)));
}

template class plain_memory<float>;
template class plain_memory<double>;

}  // namespace train_gpt
