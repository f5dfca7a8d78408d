#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <sys/mman.h>

#include "fake_cudart.hpp"
#include "fake_stream.hpp"

namespace forebay::testing {

/// "Device" memory: what the library sees can't be touched; the fake's copies work on a second view of the same pages.
struct fake_allocation {
  std::byte* visible = nullptr;
  std::byte* real = nullptr;
  std::uint64_t mapped = 0;
  std::uint64_t shift = 0;  // of what was handed out into the mapping
  std::uint64_t bytes = 0;
};

struct fake_event {
  std::shared_ptr<fake_recording> recording;
};

/// Everything behind the fake calls. Public by intent: the calls are its only users.
struct fake_state {
  explicit fake_state(const fake_cudart_options& o) : options(o) {}

  /// The code that a call has to return before it does anything.
  cudaError_t enter(const char* call);
  cudaError_t note(cudaError_t code);

  cudaError_t allocate(void** p, std::uint64_t bytes);
  cudaError_t release(void* p);
  /// The second view of device memory; null when the range is not inside one allocation.
  [[nodiscard]] std::byte* real_address(const void* p, std::uint64_t bytes);
  /// Whether a host range is wholly inside one registration, or touches none.
  [[nodiscard]] bool uniform(const void* p, std::uint64_t bytes);

  fake_cudart_options options;
  fake_monitor monitor;
  std::mutex tables;  // the maps below
  std::map<std::byte*, fake_allocation> allocations;
  std::map<fake_stream*, std::unique_ptr<fake_stream>> streams;
  std::map<fake_event*, std::unique_ptr<fake_event>> events;
  std::map<const std::byte*, std::uint64_t> registrations;
  std::map<std::string, cudaError_t> failing;
  std::atomic<cudaError_t> broken{cudaSuccess};
  std::uint64_t events_made = 0;
  std::uint64_t largest_copy = 0;
};

/// The fake that is in force; null: the calls go to the real run-time.
extern fake_state* fake;
/// The last error of this thread, as cudaGetLastError tells it.
extern thread_local cudaError_t fake_last_error;
/// Set inside callbacks, where no call is permitted.
extern thread_local bool fake_inside_callback;

}  // namespace forebay::testing
