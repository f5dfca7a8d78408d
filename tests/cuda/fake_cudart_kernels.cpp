// Kernels on the fake run-time: their twins on the host. See fake_cudart.hpp and forebay/cuda/launch.hpp.
#include <cstring>
#include <vector>

#include <forebay/cuda/launch.hpp>

#include "fake_call.hpp"

using namespace forebay::testing;

namespace {

/// While it lives, device memory is mapped for the host: kernels may touch it, and nothing else should.
class open_memory {
 public:
  open_memory() { count(+1); }
  ~open_memory() { count(-1); }
  open_memory(const open_memory&) = delete;
  open_memory& operator=(const open_memory&) = delete;

 private:
  static void count(int change) {
    static int running = 0;
    const std::scoped_lock lock(fake->tables);
    running += change;
    const int protection = running > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
    for (const auto& [start, allocation] : fake->allocations) {
      ::mprotect(allocation.visible, allocation.mapped, protection);
    }
  }
};

}  // namespace

extern "C" cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes, cudaStream_t s) {
  FAKE(cudaLaunchKernel, kernel, grid, block, arguments, shared_bytes, s)
  const forebay::kernel_twin twin = **static_cast<const forebay::kernel_twin**>(arguments[2]);
  const std::size_t count = *static_cast<const std::size_t*>(arguments[1]);
  std::vector<std::byte> body(twin.body_bytes);
  std::memcpy(body.data(), arguments[0], body.size());
  reinterpret_cast<fake_stream*>(s)->enqueue([twin, count, body = std::move(body)] {
    if (fake->broken == cudaSuccess) {
      const open_memory open;
      twin.run(body.data(), count);
    }
  });
  return cudaSuccess;
}
