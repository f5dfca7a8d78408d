#include <forebay/cuda/launch.hpp>

#include <algorithm>

#include "cuda/detail/cuda_call.hpp"

namespace forebay {

void launch_kernel(cudaStream_t stream, const void* kernel, const void* body, std::size_t count, std::size_t lanes,
                   const kernel_twin& twin) {
  if (count == 0) {
    return;
  }
  constexpr std::size_t threads = 256;
  constexpr std::size_t most_blocks = std::size_t{1} << 16U;  // several times what any GPU runs at once
  const std::size_t items = threads / lanes;
  const auto blocks = static_cast<unsigned>(std::min((count + items - 1) / items, most_blocks));
  const kernel_twin* host = &twin;
  // The run-time takes pointers to mutable memory; it copies the arguments before it returns and writes none.
  void* arguments[] = {const_cast<void*>(body), &count, &host};
  const cudaError_t code =
      cudaLaunchKernel(kernel, dim3(blocks), dim3(static_cast<unsigned>(threads)), &arguments[0], 0, stream);
  if (code != cudaSuccess) {
    detail::forget_cuda_error();
    detail::check_cuda(code, "cudaLaunchKernel");
  }
}

}  // namespace forebay
