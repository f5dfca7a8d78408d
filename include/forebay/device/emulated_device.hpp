#pragma once

#include <memory>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/device/device.hpp>

namespace forebay {

struct emulated_device_options {
  byte_count capacity = 0;                ///< bytes of device memory, exactly
  byte_count h2d_bytes_per_second = 0;    ///< host-to-device link rate, shared by all its streams; 0: as fast as memcpy
  byte_count d2h_bytes_per_second = 0;    ///< likewise device to host
  byte_count pin_limit = ~byte_count{0};  ///< pinning beyond this many bytes is refused, as a container would
};

/// A device made of host memory: an arena of exactly `capacity` bytes and real asynchronous streams, a thread each. A
/// rated link takes bytes / rate of wall time per copy, one copy at a time per direction. It hides nothing: everything
/// above runs as it would above a GPU.
/// \throws usage_error when `capacity` is 0; capacity_error when the machine cannot give it.
[[nodiscard]] std::unique_ptr<device> emulated_device(const emulated_device_options& options);

}  // namespace forebay
