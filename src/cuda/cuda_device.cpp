#include <forebay/cuda.hpp>

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

#include "cuda/detail/cuda_stream.hpp"
#include "device/detail/copy_range.hpp"

namespace forebay {
namespace {

constexpr byte_count arena_alignment = 4_KiB;

/// One plain allocation. The run-time aligns large ones to far more than a page; a small one that it packed among
/// others gets a page more, so that it can be aligned here.
class device_memory {
 public:
  explicit device_memory(byte_count bytes) {
    allocate(bytes, bytes);
    if (misalignment() != 0) {
      release();
      allocate(bytes + arena_alignment, bytes);
    }
    const byte_count shift = misalignment() == 0 ? 0 : arena_alignment - misalignment();
    arena_ = {static_cast<std::byte*>(start_) + shift, bytes};
  }
  ~device_memory() { release(); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  [[nodiscard]] std::span<std::byte> arena() const noexcept { return arena_; }

 private:
  [[nodiscard]] byte_count misalignment() const { return reinterpret_cast<std::uintptr_t>(start_) % arena_alignment; }

  void allocate(byte_count bytes, byte_count wanted) {
    const cudaError_t code = cudaMalloc(&start_, bytes);
    if (code == cudaErrorMemoryAllocation) {
      detail::forget_cuda_error();
      std::size_t free = 0;
      std::size_t total = 0;
      detail::check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      throw capacity_error(fmt::format(
          "the device can't give {} ({} bytes) of memory: {} of its {} are free; choose a smaller device capacity",
          format_bytes(wanted), wanted, format_bytes(free), format_bytes(total)));
    }
    detail::check_cuda(code, "cudaMalloc");
  }

  void release() noexcept {
    if (start_ != nullptr && cudaFree(start_) != cudaSuccess) {
      detail::forget_cuda_error();
    }
    start_ = nullptr;
  }

  void* start_ = nullptr;
  std::span<std::byte> arena_;
};

std::string title_of(int ordinal) {
  const int count = cuda_device_count();
  if (ordinal < 0 || ordinal >= count) {
    throw unsupported_error(fmt::format("there is no CUDA device {}: this process can use {} of them{}", ordinal, count,
                                        count == 0 ? " (is the driver there, and CUDA_VISIBLE_DEVICES right?)" : ""));
  }
  cudaDeviceProp properties{};
  detail::check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  return fmt::format("cuda:{} {}", ordinal, &properties.name[0]);
}

class cuda final : public device {
 public:
  cuda(int ordinal, byte_count capacity)
      : name_(title_of(ordinal)), current_(ordinal), context_{ordinal, {}, {}, {}}, memory_(capacity) {
    context_.arena = memory_.arena();
    current_.reset();
    filler_ = make(stream_kind::compute);
  }

  ~cuda() override {
    filler_.reset();
    current_.emplace(context_.ordinal);  // for what the members free
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::span<std::byte> arena() const noexcept override { return memory_.arena(); }
  [[nodiscard]] bool host_addressable() const noexcept override { return false; }
  [[nodiscard]] std::unique_ptr<stream> make_stream(stream_kind kind) override { return make(kind); }

  void fill(std::byte* to, std::byte pattern, byte_count bytes) override {
    detail::check_inside(memory_.arena(), to, bytes, "the range to fill is not inside the device's arena");
    filler_->fill(to, pattern, bytes);
  }

  [[nodiscard]] pin_result pin(std::span<std::byte> host_memory) override {
    const detail::current_device current(context_.ordinal);
    return context_.pinned.pin(host_memory);
  }
  void unpin(std::span<std::byte> host_memory) noexcept override {
    const detail::current_device current(context_.ordinal);
    context_.pinned.unpin(host_memory);
  }

  [[nodiscard]] std::unique_ptr<stream> wrap(cudaStream_t handle) {
    return std::make_unique<detail::cuda_stream>(context_, handle, false);
  }

 private:
  [[nodiscard]] std::unique_ptr<detail::cuda_stream> make(stream_kind) {
    const detail::current_device current(context_.ordinal);
    cudaStream_t handle = nullptr;
    detail::check_cuda(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    try {
      return std::make_unique<detail::cuda_stream>(context_, handle, true);
    } catch (...) {
      static_cast<void>(cudaStreamDestroy(handle));
      throw;
    }
  }

  const std::string name_;
  std::optional<detail::current_device> current_;  // only while members are made and destroyed
  detail::cuda_context context_;
  device_memory memory_;
  std::unique_ptr<detail::cuda_stream> filler_;
};

}  // namespace

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    detail::forget_cuda_error();
    return 0;
  }
  return count;
}

std::unique_ptr<device> cuda_device(int ordinal, byte_count capacity) {
  FOREBAY_EXPECTS(capacity > 0, "a CUDA device needs a capacity");
  return std::make_unique<cuda>(ordinal, capacity);
}

std::unique_ptr<stream> wrap_stream(device& owner, cudaStream_t handle) {
  auto* const ours = dynamic_cast<cuda*>(&owner);
  FOREBAY_EXPECTS(ours != nullptr, "a CUDA stream is wrapped for a CUDA device of this library");
  return ours->wrap(handle);
}

cudaStream_t native_stream(const stream& s) {
  FOREBAY_EXPECTS(s.native_handle() != nullptr, "the stream has a CUDA stream");
  return static_cast<cudaStream_t>(s.native_handle());
}

}  // namespace forebay
