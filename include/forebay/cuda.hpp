#pragma once

// The one public header that needs the CUDA toolkit's own.
#include <cuda_runtime_api.h>

#include <memory>

#include <forebay/device/cuda_device.hpp>
#include <forebay/device/device.hpp>

namespace forebay {

/// The caller's stream as one of ours, so that leases can be acquired on it. The caller keeps it and destroys it after
/// the wrapper, whose destructor waits for its work. `record` covers all that has been enqueued on it, by whomever.
/// \throws usage_error when `owner` is not a CUDA device of this library.
[[nodiscard]] std::unique_ptr<stream> wrap_stream(device& owner, cudaStream_t handle);

/// The stream's cudaStream_t. \throws usage_error when it has none.
[[nodiscard]] cudaStream_t native_stream(const stream& s);

}  // namespace forebay
