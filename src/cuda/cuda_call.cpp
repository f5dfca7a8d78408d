#include "cuda/detail/cuda_call.hpp"

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::detail {

std::string describe_cuda(cudaError_t code) {
  return fmt::format("{} ({})", cudaGetErrorName(code), cudaGetErrorString(code));
}

void forget_cuda_error() noexcept { static_cast<void>(cudaGetLastError()); }

void check_cuda(cudaError_t code, const char* call) {
  if (code != cudaSuccess) {
    forget_cuda_error();
    throw device_error(fmt::format("{} failed: {}", call, describe_cuda(code)));
  }
}

current_device::current_device(int ordinal) noexcept {
  int now = ordinal;
  if (cudaGetDevice(&now) == cudaSuccess && now != ordinal && cudaSetDevice(ordinal) == cudaSuccess) {
    before_ = now;
  }
}

current_device::~current_device() {
  if (before_ >= 0) {
    static_cast<void>(cudaSetDevice(before_));
  }
}

cudaError_t cuda_event::create() noexcept { return cudaEventCreateWithFlags(&handle_, cudaEventBlockingSync); }

cuda_event::~cuda_event() {
  if (handle_ != nullptr && cudaEventDestroy(handle_) != cudaSuccess) {
    forget_cuda_error();  // the context is gone, and the event with it
  }
}

}  // namespace forebay::detail
