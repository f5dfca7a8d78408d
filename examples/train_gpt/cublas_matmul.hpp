#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <span>

#include "cuda_operations.hpp"
#include "matmul.hpp"

namespace train_gpt {

/// The products on a GPU. Not thread-safe.
class cublas_matmul {
 public:
  explicit cublas_matmul(matmul_precision precision) : precision_(precision) {}
  ~cublas_matmul();
  cublas_matmul(const cublas_matmul&) = delete;
  cublas_matmul& operator=(const cublas_matmul&) = delete;

  /// What each product must be given: cuBLAS then takes no memory of its own, and chooses the same way each time.
  static constexpr std::size_t scratch_bytes = (std::size_t{32} << 20U) + 256;

  /// Enqueues c = a b or c += a b. The rows of c are contiguous, and so are rows or columns of a and b.
  /// \throws forebay::device_error naming the call, std::logic_error when the scratch is too small.
  void operator()(cudaStream_t stream, const product& p, const float* a, const float* b, float* c,
                  std::span<std::byte> scratch);

 private:
  const matmul_precision precision_;
  cublasHandle_t handle_ = nullptr;  // made by the first product: a device must be there
};

}  // namespace train_gpt
