#pragma once

#include <memory>

#include "operations.hpp"

namespace train_gpt {

/// On a CUDA device: cuBLAS multiplies, kernels do the rest. Its calls enqueue on the stream that `run_on` names. But
/// for products and logarithms the bits are the CPU's; products have the same bits each time on one GPU.
[[nodiscard]] std::unique_ptr<operations<float>> cuda_operations(matmul_precision precision);

}  // namespace train_gpt
