// The run-time's memory calls, taken over by this executable. See fake_cudart.hpp.
#include "fake_call.hpp"

using namespace forebay::testing;

extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  FAKE(cudaMemGetInfo, free, total)
  *total = fake->options.memory;
  *free = fake->options.memory;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  FAKE(cudaMalloc, p, bytes)
  return fake->allocate(p, bytes);
}

cudaError_t cudaFree(void* p) {
  FAKE(cudaFree, p)
  return fake->release(p);
}

cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned flags) {
  FAKE(cudaHostRegister, p, bytes, flags)
  if (!fake->uniform(p, bytes)) {
    return fake->note(cudaErrorHostMemoryAlreadyRegistered);
  }
  const std::scoped_lock lock(fake->tables);
  std::uint64_t used = 0;
  for (const auto& [start, size] : fake->registrations) {
    used += size;
  }
  if (bytes > fake->options.register_limit || used > fake->options.register_limit - bytes) {
    return fake->note(cudaErrorMemoryAllocation);
  }
  fake->registrations.emplace(static_cast<const std::byte*>(p), bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* p) {
  FAKE(cudaHostUnregister, p)
  const std::scoped_lock lock(fake->tables);
  return fake->registrations.erase(static_cast<const std::byte*>(p)) == 1
             ? cudaSuccess
             : fake->note(cudaErrorHostMemoryNotRegistered);
}

}  // extern "C"
