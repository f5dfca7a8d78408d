#include "cuda/detail/host_registry.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

#include <fmt/format.h>

#include "cuda/detail/cuda_call.hpp"

namespace forebay::detail {
namespace {

constexpr byte_count largest_part = 1_GiB;

}  // namespace

host_registry::~host_registry() {
  while (!parts_.empty()) {
    unregister(parts_.begin()->second);
  }
}

pin_result host_registry::pin(std::span<std::byte> memory) {
  const std::scoped_lock lock(mutex_);
  pins_.check_new(memory);
  byte_count done = 0;
  cudaError_t code = cudaSuccess;
  while (done < memory.size()) {
    const auto part = memory.subspan(done, std::min<byte_count>(largest_part, memory.size() - done));
    code = cudaHostRegister(part.data(), part.size(), cudaHostRegisterPortable);
    if (code != cudaSuccess) {
      forget_cuda_error();  // a refusal is an answer, not a failure that a later call should report
      break;
    }
    parts_.emplace(part.data(), part);
    done += part.size();
  }
  if (done > 0) {
    pins_.add(memory.first(done));
  }
  if (done == memory.size()) {
    return {done, {}};
  }
  return {done, pin_refusal(memory.size(), done, fmt::format("cudaHostRegister: {}", describe_cuda(code)))};
}

void host_registry::unpin(std::span<std::byte> memory) noexcept {
  const std::scoped_lock lock(mutex_);
  unregister(pins_.take(memory.data()));
}

byte_count host_registry::uniform_run(const std::byte* start, byte_count bytes) const {
  const std::shared_lock lock(mutex_);
  const auto next = parts_.upper_bound(start);
  if (next != parts_.begin()) {
    const std::span<std::byte> part = std::prev(next)->second;
    const byte_count into = static_cast<byte_count>(start - part.data());
    if (into < part.size()) {
      return std::min<byte_count>(bytes, part.size() - into);
    }
  }
  return next == parts_.end() ? bytes : std::min<byte_count>(bytes, static_cast<byte_count>(next->first - start));
}

void host_registry::unregister(std::span<std::byte> memory) noexcept {
  while (!memory.empty()) {
    const auto part = parts_.find(memory.data());
    if (part == parts_.end()) {
      return;
    }
    if (cudaHostUnregister(memory.data()) != cudaSuccess) {
      forget_cuda_error();  // the context is gone, and its registrations with it
    }
    memory = memory.subspan(std::min(memory.size(), part->second.size()));
    parts_.erase(part);
  }
}

}  // namespace forebay::detail
