#include "fake_state.hpp"

#include <unistd.h>

namespace forebay::testing {

fake_state* fake = nullptr;
thread_local cudaError_t fake_last_error = cudaSuccess;
thread_local bool fake_inside_callback = false;

cudaError_t fake_state::note(cudaError_t code) {
  if (code != cudaSuccess && code != cudaErrorNotReady) {
    fake_last_error = code;
  }
  return code;
}

cudaError_t fake_state::enter(const char* call) {
  if (fake_inside_callback) {
    return note(cudaErrorNotPermitted);
  }
  if (broken != cudaSuccess) {
    return note(broken);
  }
  const std::scoped_lock lock(tables);
  const auto chosen = failing.find(call);
  if (chosen == failing.end()) {
    return cudaSuccess;
  }
  const cudaError_t code = chosen->second;
  failing.erase(chosen);
  return note(code);
}

cudaError_t fake_state::allocate(void** p, std::uint64_t bytes) {
  const std::scoped_lock lock(tables);
  std::uint64_t used = 0;
  for (const auto& [start, a] : allocations) {
    used += a.bytes;
  }
  if (bytes > options.memory || used > options.memory - bytes) {
    return note(cudaErrorMemoryAllocation);
  }
  fake_allocation a;
  a.shift = options.allocation_shift;
  a.bytes = bytes;
  a.mapped = (bytes + a.shift + 4095) / 4096 * 4096;
  const int file = ::memfd_create("fake device memory", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(a.mapped)) != 0) {
    return note(cudaErrorUnknown);
  }
  a.visible = static_cast<std::byte*>(::mmap(nullptr, a.mapped, PROT_NONE, MAP_SHARED, file, 0));
  a.real = static_cast<std::byte*>(::mmap(nullptr, a.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ::close(file);
  *p = a.visible + a.shift;
  allocations.emplace(a.visible + a.shift, a);
  return cudaSuccess;
}

cudaError_t fake_state::release(void* p) {
  const std::scoped_lock lock(tables);
  const auto found = allocations.find(static_cast<std::byte*>(p));
  if (found == allocations.end()) {
    return note(cudaErrorInvalidValue);
  }
  ::munmap(found->second.visible, found->second.mapped);
  ::munmap(found->second.real, found->second.mapped);
  allocations.erase(found);
  return cudaSuccess;
}

std::byte* fake_state::real_address(const void* p, std::uint64_t bytes) {
  const std::scoped_lock lock(tables);
  const auto* const at = static_cast<const std::byte*>(p);
  for (const auto& [start, a] : allocations) {
    if (at >= start && at + bytes <= start + a.bytes) {
      return a.real + a.shift + (at - start);
    }
  }
  return nullptr;
}

bool fake_state::uniform(const void* p, std::uint64_t bytes) {
  const std::scoped_lock lock(tables);
  const auto* const begin = static_cast<const std::byte*>(p);
  const std::byte* const end = begin + bytes;
  for (const auto& [start, size] : registrations) {
    if (begin < start + size && start < end) {
      return begin >= start && end <= start + size;
    }
  }
  return true;
}

fake_cudart::fake_cudart(const fake_cudart_options& options) { fake = new fake_state(options); }

fake_cudart::~fake_cudart() {
  delete fake;
  fake = nullptr;
  fake_last_error = cudaSuccess;
}

void fake_cudart::break_behind(cudaStream_t stream) {
  reinterpret_cast<fake_stream*>(stream)->enqueue([] { fake->broken = cudaErrorIllegalAddress; });
}

cudaError_t fake_cudart::wait_until_broken() {
  std::unique_lock lock(fake->monitor.mutex);
  fake->monitor.changed.wait(lock, [] { return fake->broken != cudaSuccess; });
  return fake->broken;
}

void fake_cudart::fail_next(const std::string& call, cudaError_t code) {
  const std::scoped_lock lock(fake->tables);
  fake->failing[call] = code;
}

std::vector<std::string> fake_cudart::leaks() {
  const std::scoped_lock lock(fake->tables);
  std::vector<std::string> result;
  const auto count = [&](const char* what, std::size_t n) {
    if (n > 0) {
      result.push_back(std::to_string(n) + " " + what);
    }
  };
  count("streams", fake->streams.size());
  count("events", fake->events.size());
  if (fake->broken == cudaSuccess) {  // a broken context has lost these itself
    count("allocations", fake->allocations.size());
    count("registrations", fake->registrations.size());
  }
  return result;
}

std::vector<std::uint64_t> fake_cudart::registered_sizes() {
  const std::scoped_lock lock(fake->tables);
  std::vector<std::uint64_t> sizes;
  for (const auto& [start, bytes] : fake->registrations) {
    sizes.push_back(bytes);
  }
  return sizes;
}

std::uint64_t fake_cudart::events_made() { return fake->events_made; }
std::uint64_t fake_cudart::largest_copy() { return fake->largest_copy; }

}  // namespace forebay::testing
