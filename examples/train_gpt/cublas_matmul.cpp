#include "cublas_matmul.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <forebay/base/error.hpp>
#include <stdexcept>

namespace train_gpt {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw forebay::device_error(fmt::format("{} failed: {}", call, cublasGetStatusName(status)));
  }
}

/// A row-major matrix as cuBLAS, which counts by columns, sees it: its transpose, or itself.
struct column_major {
  cublasOperation_t operation;
  int leading;

  explicit column_major(const layout& l)
      : operation(l.column_stride == 1 ? CUBLAS_OP_N : CUBLAS_OP_T),
        leading(static_cast<int>(l.column_stride == 1 ? std::max(l.row_stride, l.columns)
                                                      : std::max(l.column_stride, l.rows))) {
    if (l.column_stride != 1 && l.row_stride != 1) {
      throw std::logic_error("a product's factor has gaps in both directions");
    }
  }
};

[[nodiscard]] cublasComputeType_t compute_type(matmul_precision precision) {
  switch (precision) {
    case matmul_precision::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case matmul_precision::bf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

[[nodiscard]] std::byte* aligned(std::byte* p) { return p + (256 - reinterpret_cast<std::uintptr_t>(p) % 256) % 256; }

}  // namespace

cublas_matmul::~cublas_matmul() {
  if (handle_ != nullptr) {
    static_cast<void>(cublasDestroy(handle_));
  }
}

// In columns, c = a b reads c^T = b^T a^T, and a row-major matrix lies there as its transpose.
void cublas_matmul::operator()(cudaStream_t stream, const product& p, const float* a, const float* b, float* c,
                               std::span<std::byte> scratch) {
  if (scratch.size() < scratch_bytes) {
    throw std::logic_error("a matrix product needs more scratch than it was given");
  }
  if (handle_ == nullptr) {
    check(cublasCreate(&handle_), "cublasCreate");
  }
  check(cublasSetStream(handle_, stream), "cublasSetStream");
  check(cublasSetWorkspace(handle_, aligned(scratch.data()), scratch_bytes - 256), "cublasSetWorkspace");
  const column_major of_a(p.a);
  const column_major of_b(p.b);
  const auto n = [](std::size_t value) { return static_cast<int>(value); };
  const auto stride = [](const layout& l) { return static_cast<long long>(l.batch_stride); };
  const float one = 1.0F;
  const float before = p.accumulate ? 1.0F : 0.0F;
  check(cublasGemmStridedBatchedEx(handle_, of_b.operation, of_a.operation, n(p.c.columns), n(p.c.rows), n(p.a.columns),
                                   &one, b, CUDA_R_32F, of_b.leading, stride(p.b), a, CUDA_R_32F, of_a.leading,
                                   stride(p.a), &before, c, CUDA_R_32F, n(p.c.row_stride), stride(p.c), n(p.batch),
                                   compute_type(precision_), CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace train_gpt
