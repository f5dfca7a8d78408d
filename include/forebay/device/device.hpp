#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/base/function.hpp>

namespace forebay {

/// How many operations a stream had been given when the point was taken. Point 0 has always passed. A point replaces
/// the event object of other run-times: it is a value, costs nothing to keep, and points of one stream are ordered.
using stream_point = std::uint64_t;

enum class copy_direction : std::uint8_t { host_to_device, device_to_host, device_to_device };

enum class stream_kind : std::uint8_t { compute, host_to_device, device_to_host };

/// An in-order queue of asynchronous work on one device. Enqueueing calls are thread-safe, return without waiting for
/// the work, and throw device_error when the device cannot take it. Destruction waits for all the work.
class stream {
 public:
  stream() = default;
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  virtual ~stream() = default;

  /// Copies `bytes` once all earlier work is done. Both ranges stay valid and unused by others until then.
  virtual void copy(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) = 0;
  /// Runs `work` in stream order, with the device's memory addressable. An exception that leaves it fails the stream.
  /// \throws unsupported_error on devices whose memory the host cannot address (see device::host_addressable).
  virtual void launch(unique_function<void()> work) = 0;
  /// Calls `callback` on a thread of the device's once all earlier work is done, or has been skipped because the stream
  /// failed. It must be short, must not throw, and must not call into this device.
  virtual void notify(unique_function<void()> callback) = 0;

  /// The point behind everything enqueued so far.
  [[nodiscard]] virtual stream_point record() = 0;
  /// Later work of this stream starts only after `point` of `other` (a stream of the same device) has passed.
  virtual void wait(const stream& other, stream_point point) = 0;
  [[nodiscard]] virtual bool passed(stream_point point) const noexcept = 0;
  /// Blocks the host until `point` has passed. \throws the stream's failure, when it has one.
  virtual void synchronize(stream_point point) = 0;
  void synchronize() { synchronize(record()); }

  /// The first exception that this stream's work raised; null while it is healthy. A failed stream skips `copy` and
  /// `launch` but still passes its points and calls its callbacks, so that whoever waits can go on and see the failure.
  [[nodiscard]] virtual std::exception_ptr failure() const noexcept = 0;

  /// Since when the stream has had nothing to do; `time_point::max()` while it has work. For attributing stalls.
  [[nodiscard]] virtual time_point idle_since() const noexcept = 0;
  /// How long the stream has stood in `wait`s with later work enqueued behind them, in total.
  [[nodiscard]] virtual duration waited() const noexcept = 0;

  /// The run-time's own handle (cudaStream_t), or null.
  [[nodiscard]] virtual void* native_handle() const noexcept { return nullptr; }
};

/// What became of pinning host memory. A refusal is not an error: copies then take pageable memory.
struct pin_result {
  byte_count pinned_bytes = 0;
  std::string refusal;  ///< empty when all was pinned; names page-locked host memory, the bytes and the reason
};

/// One accelerator: its memory (one arena), its streams, and its view of host memory. Thread-safe. Outlives its
/// streams.
class device {
 public:
  device() = default;
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  virtual ~device() = default;

  /// "emulated" or e.g. "cuda:0 NVIDIA H200".
  [[nodiscard]] virtual std::string name() const = 0;
  /// All the device memory that the engine may use, exactly the capacity asked for, aligned to at least 4 KiB.
  /// Dereference it on the host only when `host_addressable()`.
  [[nodiscard]] virtual std::span<std::byte> arena() const noexcept = 0;
  [[nodiscard]] virtual bool host_addressable() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<stream> make_stream(stream_kind kind) = 0;
  /// Fills device memory with a byte pattern and waits (poisoning in debug builds).
  virtual void fill(std::byte* to, std::byte pattern, byte_count bytes) = 0;

  [[nodiscard]] virtual pin_result pin(std::span<std::byte> host_memory) = 0;
  virtual void unpin(std::span<std::byte> host_memory) noexcept = 0;
};

}  // namespace forebay
