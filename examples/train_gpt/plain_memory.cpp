#include "plain_memory.hpp"

#include <sys/mman.h>

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

[[nodiscard]] std::vector<std::size_t> sizes_of(const std::vector<forebay::tensor_spec>& specs) {
  std::vector<std::size_t> sizes;
  for (const forebay::tensor_spec& spec : specs) {
    sizes.push_back(spec.bytes());
  }
  return sizes;
}

/// Where each piece starts, and the end of the last.
[[nodiscard]] std::vector<std::size_t> offsets_of(const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> offsets{0};
  for (const std::size_t size : sizes) {
    offsets.push_back((offsets.back() + size + scratch_alignment - 1) / scratch_alignment * scratch_alignment);
  }
  return offsets;
}

constexpr std::size_t huge_page = std::size_t{2} << 20U;

[[nodiscard]] std::align_val_t alignment_for(std::size_t bytes) {
  return std::align_val_t{bytes >= huge_page ? huge_page : scratch_alignment};
}

}  // namespace

aligned_bytes::aligned_bytes(std::size_t bytes)
    : bytes_(bytes),
      data_(static_cast<std::byte*>(::operator new[](bytes, alignment_for(bytes))), {alignment_for(bytes)}) {
  if (bytes >= huge_page) {
    static_cast<void>(::madvise(data_.get(), bytes / huge_page * huge_page, MADV_HUGEPAGE));  // advice: may be refused
  }
  std::memset(data_.get(), 0, bytes);
}

pieces::pieces(const std::vector<std::size_t>& sizes)
    : sizes_(sizes), offsets_(offsets_of(sizes)), memory_(offsets_.back()) {}

template <typename T>
plain_memory<T>::plain_memory(const model<T>& of)
    : tensors_(sizes_of(of.tensors().specs())), workspace_(largest_workspace(of.steps())) {}

template <typename T>
void plain_memory<T>::run(const model_step& step) {
  prepare_compute_thread();
  std::vector<std::span<std::byte>> buffers;
  buffers.reserve(step.accesses.size());
  for (const model_access& access : step.accesses) {
    buffers.push_back(tensors_.template of<std::byte>(access.tensor));
  }
  step.run(step_memory(step.accesses, buffers, workspace_.span().first(step.workspace)));
}

template class plain_memory<float>;
template class plain_memory<double>;

}  // namespace train_gpt
