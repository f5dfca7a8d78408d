#pragma once

#include <memory>
#include <span>

#include <forebay/base/dtype.hpp>
#include <forebay/optimizer/device_update.hpp>

// Of the library forebay::cuda. All spans are device memory, and work is enqueued on a stream of a CUDA device.
namespace forebay {

/// The update's kernels on a CUDA device; for `adamw_options::kernels`.
[[nodiscard]] std::unique_ptr<device_update> cuda_update();

/// to = from * factor, in fp32; in place where both are one span. \throws usage_error on unequal lengths, device_error.
void cuda_scale(stream& on, std::span<const float> from, float factor, std::span<float> to);
/// Rounds to nearest even, or widens. \throws usage_error on unequal lengths, device_error.
void cuda_cast(stream& on, std::span<const float> from, std::span<bf16> to);
void cuda_cast(stream& on, std::span<const bf16> from, std::span<float> to);

}  // namespace forebay
