#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace forebay::detail {

/// "cudaErrorMemoryAllocation (out of memory)".
[[nodiscard]] std::string describe_cuda(cudaError_t code);

/// Takes the run-time's memory of the last error away, so that an unrelated later call does not report it.
void forget_cuda_error() noexcept;

/// \throws device_error "cudaX failed: ..." unless `code` is success.
void check_cuda(cudaError_t code, const char* call);

/// Makes a device current for a scope, and the caller's again after it.
class current_device {
 public:
  explicit current_device(int ordinal) noexcept;
  ~current_device();
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int before_ = -1;  // -1: nothing to restore
};

/// An event of the device that is current when `create` is called. Its waiters sleep; it keeps the time.
class cuda_event {
 public:
  cuda_event() = default;
  ~cuda_event();
  cuda_event(const cuda_event&) = delete;
  cuda_event& operator=(const cuda_event&) = delete;

  [[nodiscard]] cudaError_t create() noexcept;
  [[nodiscard]] cudaEvent_t get() const noexcept { return handle_; }

 private:
  cudaEvent_t handle_ = nullptr;
};

}  // namespace forebay::detail
