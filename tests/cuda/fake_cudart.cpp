// The run-time's calls, taken over by this executable. See fake_cudart.hpp.
#include "fake_cudart.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

#include "fake_call.hpp"

using namespace forebay::testing;

namespace {

fake_stream& of(cudaStream_t s) { return *reinterpret_cast<fake_stream*>(s); }
fake_event& of(cudaEvent_t e) { return *reinterpret_cast<fake_event*>(e); }

void wait_for(const std::shared_ptr<fake_recording>& recording) {
  std::unique_lock lock(fake->monitor.mutex);
  fake->monitor.changed.wait(lock, [&] { return recording->done; });
}

/// Work that is skipped once the context is broken.
template <typename Work>
void enqueue(cudaStream_t s, Work work) {
  of(s).enqueue([work] {
    if (fake->broken == cudaSuccess) {
      work();
    }
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  if (fake == nullptr) {
    return real_call(&cudaGetLastError, "cudaGetLastError")();
  }
  return fake->broken != cudaSuccess ? fake->broken.load() : std::exchange(fake_last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  if (fake == nullptr) {
    return real_call(&cudaPeekAtLastError, "cudaPeekAtLastError")();
  }
  return fake->broken != cudaSuccess ? fake->broken.load() : fake_last_error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  FAKE(cudaGetDeviceCount, count)
  *count = fake->options.devices;
  return fake->options.devices > 0 ? cudaSuccess : fake->note(cudaErrorNoDevice);
}

static thread_local int fake_current_device = 0;

cudaError_t cudaGetDevice(int* ordinal) {
  FAKE(cudaGetDevice, ordinal)
  *ordinal = fake_current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal) {
  FAKE(cudaSetDevice, ordinal)
  if (ordinal < 0 || ordinal >= fake->options.devices) {
    return fake->note(cudaErrorInvalidDevice);
  }
  fake_current_device = ordinal;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  FAKE(cudaGetDeviceProperties, properties, ordinal)
  *properties = {};
  std::snprintf(&properties->name[0], sizeof properties->name, "fake %d", ordinal);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  FAKE(cudaStreamCreateWithFlags, s, flags)
  auto made = std::make_unique<fake_stream>(fake->monitor);
  *s = reinterpret_cast<cudaStream_t>(made.get());
  const std::scoped_lock lock(fake->tables);
  fake->streams.emplace(made.get(), std::move(made));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
  if (fake == nullptr) {
    return real_call(&cudaStreamDestroy, "cudaStreamDestroy")(s);
  }
  std::unique_ptr<fake_stream> doomed;
  {
    const std::scoped_lock lock(fake->tables);
    const auto found = fake->streams.find(&of(s));
    if (found == fake->streams.end()) {
      return fake->note(cudaErrorInvalidResourceHandle);
    }
    doomed = std::move(found->second);
    fake->streams.erase(found);
  }
  return fake->broken;  // even a broken context lets go of it
}

cudaError_t cudaStreamQuery(cudaStream_t s) {
  FAKE(cudaStreamQuery, s)
  const std::scoped_lock lock(fake->monitor.mutex);
  return of(s).idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  FAKE(cudaStreamSynchronize, s)
  std::unique_lock lock(fake->monitor.mutex);
  fake->monitor.changed.wait(lock, [&] { return of(s).idle(); });
  return fake->note(fake->broken);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
  FAKE(cudaStreamWaitEvent, s, e, flags)
  std::shared_ptr<fake_recording> recording;
  {
    const std::scoped_lock lock(fake->monitor.mutex);
    recording = of(e).recording;
  }
  if (recording) {
    of(s).enqueue([recording] { wait_for(recording); });
  }
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t callback, void* data, unsigned flags) {
  FAKE(cudaStreamAddCallback, s, callback, data, flags)
  of(s).enqueue([s, callback, data] {
    fake_inside_callback = true;
    callback(s, fake->broken, data);
    fake_inside_callback = false;
  });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void* data) {
  FAKE(cudaLaunchHostFunc, s, function, data)
  enqueue(s, [function, data] {
    fake_inside_callback = true;
    function(data);
    fake_inside_callback = false;
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  FAKE(cudaEventCreateWithFlags, e, flags)
  auto made = std::make_unique<fake_event>();
  *e = reinterpret_cast<cudaEvent_t>(made.get());
  const std::scoped_lock lock(fake->tables);
  ++fake->events_made;
  fake->events.emplace(made.get(), std::move(made));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
  if (fake == nullptr) {
    return real_call(&cudaEventDestroy, "cudaEventDestroy")(e);
  }
  const std::scoped_lock lock(fake->tables);
  return fake->events.erase(&of(e)) == 1 ? fake->broken.load() : fake->note(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  FAKE(cudaEventRecord, e, s)
  const auto recording = std::make_shared<fake_recording>();
  {
    const std::scoped_lock lock(fake->monitor.mutex);
    of(e).recording = recording;
  }
  of(s).enqueue([recording] {
    const std::scoped_lock lock(fake->monitor.mutex);
    recording->done = true;
    recording->at = std::chrono::steady_clock::now();
    fake->monitor.changed.notify_all();
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
  FAKE(cudaEventQuery, e)
  const std::scoped_lock lock(fake->monitor.mutex);
  return !of(e).recording || of(e).recording->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  FAKE(cudaEventSynchronize, e)
  std::shared_ptr<fake_recording> recording;
  {
    const std::scoped_lock lock(fake->monitor.mutex);
    recording = of(e).recording;
  }
  if (recording) {
    wait_for(recording);
  }
  return fake->note(fake->broken);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  FAKE(cudaEventElapsedTime, ms, from, to)
  const std::scoped_lock lock(fake->monitor.mutex);
  const auto& a = of(from).recording;
  const auto& b = of(to).recording;
  if (!a || !b) {
    return fake->note(cudaErrorInvalidResourceHandle);
  }
  if (!a->done || !b->done) {
    return cudaErrorNotReady;
  }
  *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  FAKE(cudaMemcpyAsync, to, from, bytes, kind, s)
  void* target = to;
  const void* source = from;
  if (kind != cudaMemcpyDeviceToHost) {
    target = fake->real_address(to, bytes);
  } else if (!fake->uniform(to, bytes)) {
    return fake->note(cudaErrorInvalidValue);
  }
  if (kind != cudaMemcpyHostToDevice) {
    source = fake->real_address(from, bytes);
  } else if (!fake->uniform(from, bytes)) {
    return fake->note(cudaErrorInvalidValue);
  }
  if (target == nullptr || source == nullptr) {
    return fake->note(cudaErrorInvalidValue);
  }
  {
    const std::scoped_lock lock(fake->tables);
    fake->largest_copy = std::max<std::uint64_t>(fake->largest_copy, bytes);
  }
  enqueue(s, [target, source, bytes] { std::memcpy(target, source, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t s) {
  FAKE(cudaMemsetAsync, to, value, bytes, s)
  std::byte* const target = fake->real_address(to, bytes);
  if (target == nullptr) {
    return fake->note(cudaErrorInvalidValue);
  }
  enqueue(s, [target, value, bytes] { std::memset(target, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
