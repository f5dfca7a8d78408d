// The cuBLAS calls that the trainer makes, taken over by this executable. While a fake_cudart lives they multiply on
// its streams' threads, with the rounding of factors that the compute type stands for; else they go to the real
// library.
#include <cublas_v2.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include <forebay/cuda/launch.hpp>

#include "../cuda/fake_call.hpp"

using forebay::testing::fake;
using forebay::testing::real_call;

namespace {

/// A handle: the stream, and whether a workspace was given for it.
struct fake_handle {
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
};

fake_handle& of(cublasHandle_t handle) { return *reinterpret_cast<fake_handle*>(handle); }

/// To nearest, keeping that many bits of the fraction.
float rounded(float x, int bits) {
  const unsigned drop = 23U - static_cast<unsigned>(bits);
  const auto b = std::bit_cast<std::uint32_t>(x);
  return drop == 0 ? x : std::bit_cast<float>((b + (1U << (drop - 1U))) >> drop << drop);
}

struct factor {
  const float* data;
  bool transposed;
  int leading;
  long long stride;
  [[nodiscard]] float at(int batch, int row, int column) const {
    const long long offset =
        transposed ? column + static_cast<long long>(row) * leading : row + static_cast<long long>(column) * leading;
    return data[batch * stride + offset];
  }
};

struct multiplication {
  int m, n, k, batches, bits;
  float beta;
  factor a, b;
  float* c;
  int leading;
  long long stride;
};

/// The overload that takes a compute type; the other one is for old programs.
using strided_gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                    const void*, cudaDataType, int, long long, const void*, cudaDataType, int,
                                    long long, const void*, void*, cudaDataType, int, long long, int,
                                    cublasComputeType_t, cublasGemmAlgo_t);

void multiply(const void* body, std::size_t) {
  const auto& p = *static_cast<const multiplication*>(body);
  for (int batch = 0; batch < p.batches; ++batch) {
    for (int column = 0; column < p.n; ++column) {
      for (int row = 0; row < p.m; ++row) {
        double sum = 0.0;
        for (int i = 0; i < p.k; ++i) {
          sum += static_cast<double>(rounded(p.a.at(batch, row, i), p.bits)) *
                 static_cast<double>(rounded(p.b.at(batch, i, column), p.bits));
        }
        float& to = p.c[batch * p.stride + static_cast<long long>(column) * p.leading + row];
        to = static_cast<float>(p.beta == 0.0F ? sum : static_cast<double>(to) + sum);
      }
    }
  }
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (fake == nullptr) {
    return real_call(&cublasCreate_v2, "cublasCreate_v2")(handle);
  }
  *handle = reinterpret_cast<cublasHandle_t>(new fake_handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (fake == nullptr) {
    return real_call(&cublasDestroy_v2, "cublasDestroy_v2")(handle);
  }
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (fake == nullptr) {
    return real_call(&cublasSetStream_v2, "cublasSetStream_v2")(handle, stream);
  }
  of(handle) = {stream, false};  // as the real one forgets it
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (fake == nullptr) {
    return real_call(&cublasSetWorkspace_v2, "cublasSetWorkspace_v2")(handle, workspace, bytes);
  }
  of(handle).has_workspace =
      reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0 && fake->real_address(workspace, bytes) != nullptr;
  return of(handle).has_workspace ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long stride_a, const void* b, cudaDataType b_type, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batches, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm) {
  if (fake == nullptr) {
    return real_call(static_cast<strided_gemm*>(&cublasGemmStridedBatchedEx), "cublasGemmStridedBatchedEx")(
        handle, of_a, of_b, m, n, k, alpha, a, a_type, lda, stride_a, b, b_type, ldb, stride_b, beta, c, c_type, ldc,
        stride_c, batches, compute, algorithm);
  }
  if (!of(handle).has_workspace) {
    return CUBLAS_STATUS_NOT_INITIALIZED;  // the real one would allocate outside the tier
  }
  // The dimensions that the real one refuses.
  if (lda < (of_a == CUBLAS_OP_N ? m : k) || ldb < (of_b == CUBLAS_OP_N ? k : n) || ldc < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int bits = compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 7 : compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 10 : 23;
  const multiplication body{m,
                            n,
                            k,
                            batches,
                            bits,
                            *static_cast<const float*>(beta),
                            {static_cast<const float*>(a), of_a != CUBLAS_OP_N, lda, stride_a},
                            {static_cast<const float*>(b), of_b != CUBLAS_OP_N, ldb, stride_b},
                            static_cast<float*>(c),
                            ldc,
                            stride_c};
  forebay::launch_kernel(of(handle).stream, nullptr, &body, 1, 1, {sizeof body, &multiply});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
