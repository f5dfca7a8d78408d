#pragma once

#include <memory>

#include <forebay/base/bytes.hpp>
#include <forebay/device/device.hpp>

namespace forebay {

/// How many CUDA devices this process can use; 0 also where there is no driver. Never throws.
[[nodiscard]] int cuda_device_count() noexcept;

/// The CUDA device of that ordinal with one arena of exactly `capacity` bytes, by plain allocation. Its streams don't
/// synchronize with the default stream. `launch` is refused (unsupported_error): compute is enqueued on
/// `stream::native_handle()`, a cudaStream_t. The caller's current device is left as it is.
///
/// An enqueued copy from or to host memory that is not pinned may block the caller: the CUDA run-time stages it.
/// \throws usage_error when `capacity` is 0; unsupported_error when there is no such device; capacity_error naming the
/// bytes wanted and free when it can't give them; device_error on any other failure of the run-time.
[[nodiscard]] std::unique_ptr<device> cuda_device(int ordinal, byte_count capacity);

}  // namespace forebay
