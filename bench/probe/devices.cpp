#include "devices.hpp"

#include <algorithm>

#include <forebay/base/error.hpp>
#include <forebay/device/emulated_device.hpp>

#if FOREBAY_HAS_CUDA
#include <cuda_runtime_api.h>

#include <forebay/device/cuda_device.hpp>
#endif

namespace forebay::probe {
namespace {

constexpr byte_count most_on_device = 1_GiB;

byte_count arena_bytes(const settings& s) { return std::min(s.size, most_on_device); }

#if FOREBAY_HAS_CUDA
bool has_cuda() { return cuda_device_count() > 0; }

chosen_device open_cuda(const settings& s) {
  std::size_t idle = 0;
  std::size_t all = 0;
  if (cudaSetDevice(s.ordinal) != cudaSuccess || cudaMemGetInfo(&idle, &all) != cudaSuccess) {
    throw unsupported_error("--cuda-ordinal " + std::to_string(s.ordinal) + ": no such device");
  }
  return {cuda_device(s.ordinal, std::min<byte_count>(arena_bytes(s), idle / 2)), idle};
}
#else
bool has_cuda() { return false; }

chosen_device open_cuda(const settings&) { throw unsupported_error("--device cuda: this build has no CUDA"); }
#endif

}  // namespace

chosen_device choose_device(const settings& s) {
  if (s.device == device_choice::cuda || (s.device == device_choice::automatic && has_cuda())) {
    return open_cuda(s);
  }
  return {emulated_device({.capacity = arena_bytes(s)}), s.emulated_capacity};
}

}  // namespace forebay::probe
