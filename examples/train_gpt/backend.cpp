#include "backend.hpp"

#include <forebay/base/error.hpp>
#include <forebay/device/emulated_device.hpp>

#ifdef TRAIN_GPT_HAS_CUDA
#include <forebay/device/cuda_device.hpp>
#include <forebay/optimizer/cuda_update.hpp>

#include "cuda_operations.hpp"
#endif

namespace train_gpt {
namespace {

void check_gpu(const settings& s) {
#ifdef TRAIN_GPT_HAS_CUDA
  if (forebay::cuda_device_count() == 0) {
    throw forebay::unsupported_error(
        "--device cuda: there is no CUDA device that this process can use (is the driver there, and "
        "CUDA_VISIBLE_DEVICES right?). Use --device emulated or auto");
  }
#else
  throw forebay::unsupported_error(
      "--device cuda: this trainer was built without CUDA or without cuBLAS. Use --device emulated or auto");
#endif
  if (s.h2d_rate != 0 || s.d2h_rate != 0) {
    throw forebay::usage_error("--h2d-rate and --d2h-rate limit the links of an emulated device, not of a GPU");
  }
}

}  // namespace

std::unique_ptr<operations<float>> make_operations(const settings& s) {
  if (s.device != device_kind::cuda) {
    return cpu_operations<float>();
  }
  check_gpu(s);
#ifdef TRAIN_GPT_HAS_CUDA
  return cuda_operations(s.matmul);
#else
  return nullptr;
#endif
}

std::unique_ptr<forebay::device_update> make_update_kernels(const settings& s) {
#ifdef TRAIN_GPT_HAS_CUDA
  if (s.device == device_kind::cuda) {
    return forebay::cuda_update();
  }
#endif
  static_cast<void>(s);
  return nullptr;
}

std::unique_ptr<forebay::device> make_device(const settings& s, forebay::byte_count capacity) {
#ifdef TRAIN_GPT_HAS_CUDA
  if (s.device == device_kind::cuda) {
    return forebay::cuda_device(0, capacity);
  }
#endif
  return forebay::emulated_device({capacity, s.h2d_rate, s.d2h_rate});
}

}  // namespace train_gpt
