#pragma once

#include <cstddef>
#include <type_traits>

#include <forebay/cuda.hpp>
#include <forebay/device/kernel_team.hpp>

namespace forebay {

/// The same work as a kernel on the host. It travels with the kernel's arguments, so that a run-time without a GPU (the
/// tests' one) has something to run; a GPU ignores it.
struct kernel_twin {
  std::size_t body_bytes = 0;
  void (*run)(const void* body, std::size_t count) = nullptr;
};

/// Enqueues a kernel of parameters (body, count, twin) with enough threads for `count` items of `lanes` threads each.
/// The kernel's loop takes what is beyond the largest grid. \throws device_error.
void launch_kernel(cudaStream_t stream, const void* kernel, const void* body, std::size_t count, std::size_t lanes,
                   const kernel_twin& twin);

#if defined(__CUDACC__)

namespace detail {

/// A team on a GPU: 16 neighbouring threads of a warp.
class gpu_team {
 public:
  __device__ gpu_team()
      : lane_(threadIdx.x % kernel_lanes), mask_(0xffffU << (threadIdx.x % 32U / kernel_lanes * kernel_lanes)) {}

  template <typename F>
  __device__ void each(std::size_t n, const F& f) const {
    for (std::size_t i = lane_; i < n; i += kernel_lanes) {
      f(i);
    }
    __syncwarp(mask_);
  }

  template <typename T, typename Term>
  [[nodiscard]] __device__ T sum(std::size_t n, const Term& term) const {
    T total{};
    for (std::size_t i = lane_; i < n; i += kernel_lanes) {
      total += term(i);
    }
    for (unsigned half = kernel_lanes / 2; half > 0; half /= 2) {
      total += __shfl_down_sync(mask_, total, half, kernel_lanes);
    }
    return __shfl_sync(mask_, total, 0, kernel_lanes);
  }

  template <typename T, typename Term>
  [[nodiscard]] __device__ T largest(std::size_t n, T least, const Term& term) const {
    for (std::size_t i = lane_; i < n; i += kernel_lanes) {
      const T value = term(i);
      least = value > least ? value : least;
    }
    for (unsigned half = kernel_lanes / 2; half > 0; half /= 2) {
      const T other = __shfl_down_sync(mask_, least, half, kernel_lanes);
      least = other > least ? other : least;
    }
    return __shfl_sync(mask_, least, 0, kernel_lanes);
  }

  template <typename F>
  __device__ void once(const F& f) const {
    if (lane_ == 0) {
      f();
    }
    __syncwarp(mask_);
  }

 private:
  std::size_t lane_;
  unsigned mask_;
};

template <typename Body>
__global__ void element_kernel(Body body, std::size_t count, const kernel_twin*) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    body(i);
  }
}

template <typename Body>
__global__ void team_kernel(Body body, std::size_t count, const kernel_twin*) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x / kernel_lanes;
  const gpu_team team;
  for (std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / kernel_lanes; i < count; i += stride) {
    body(team, i);
  }
}

template <typename Body>
void run_elements(const void* body, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    (*static_cast<const Body*>(body))(i);
  }
}

template <typename Body>
void run_teams(const void* body, std::size_t count) {
  const host_team team;
  for (std::size_t i = 0; i < count; ++i) {
    (*static_cast<const Body*>(body))(team, i);
  }
}

}  // namespace detail

/// Enqueues body(0) ... body(count - 1), a thread each; its pointers are the device's. \throws device_error.
template <typename Body>
void launch_elements(cudaStream_t stream, std::size_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  launch_kernel(stream, reinterpret_cast<const void*>(&detail::element_kernel<Body>), &body, count, 1,
                {sizeof(Body), &detail::run_elements<Body>});
}

/// Enqueues body(team, 0) ... body(team, count - 1), a team each. \throws device_error.
template <typename Body>
void launch_teams(cudaStream_t stream, std::size_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  launch_kernel(stream, reinterpret_cast<const void*>(&detail::team_kernel<Body>), &body, count, kernel_lanes,
                {sizeof(Body), &detail::run_teams<Body>});
}

#endif

}  // namespace forebay
