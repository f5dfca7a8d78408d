#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

/// The CUDA run-time calls that the library uses, on host threads and memory, so that the device's host code can be
/// tested without a GPU. It is stricter than the real one: device memory can't be touched by the host at all, a copy
/// must not span registered and other memory, a callback may not call the run-time. It takes the place of the real
/// calls in this executable while a `fake_cudart` lives; without one they go to the real run-time.
namespace forebay::testing {

struct fake_cudart_options {
  int devices = 1;
  std::uint64_t memory = std::uint64_t{64} << 20U;   ///< bytes of each device
  std::uint64_t register_limit = ~std::uint64_t{0};  ///< bytes that can be registered at a time
  std::uint64_t allocation_shift = 0;                ///< small allocations start this far off a page
};

class fake_cudart {
 public:
  explicit fake_cudart(const fake_cudart_options& options = {});
  ~fake_cudart();
  fake_cudart(const fake_cudart&) = delete;
  fake_cudart& operator=(const fake_cudart&) = delete;

  /// Once the stream comes to it, the context is broken: every call returns an error from then on.
  static void break_behind(cudaStream_t stream);
  static cudaError_t wait_until_broken();
  /// The next call of that name fails once with the code; nothing is done.
  static void fail_next(const std::string& call, cudaError_t code);
  /// Whatever the library should have given back: allocations, streams, events, registrations.
  [[nodiscard]] static std::vector<std::string> leaks();
  [[nodiscard]] static std::vector<std::uint64_t> registered_sizes();
  [[nodiscard]] static std::uint64_t events_made();
  [[nodiscard]] static std::uint64_t largest_copy();
};

}  // namespace forebay::testing
