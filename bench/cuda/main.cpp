// A GPU's link and the optimizer's kernels: the library's streams beside plain cudaMemcpyAsync on the same pinned
// memory, one large copy beside many small ones, both directions alone and at once.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <forebay/base/clock.hpp>
#include <forebay/base/error.hpp>
#include <forebay/cuda.hpp>
#include <forebay/memory/host_arena.hpp>
#include <forebay/optimizer/cuda_update.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

#include "../store/statistics.hpp"

namespace {

using namespace forebay;
using work = std::function<void()>;

struct settings {
  byte_count mebibytes = 256;
  unsigned rounds = 7;
};

/// One direction of the link: our stream, the host's and the device's range.
class lane {
 public:
  lane(device& d, std::span<std::byte> host, std::span<std::byte> on_device, copy_direction direction)
      : stream_(d.make_stream(direction == copy_direction::host_to_device ? stream_kind::host_to_device
                                                                          : stream_kind::device_to_host)),
        to_(direction == copy_direction::host_to_device ? on_device : host),
        from_(direction == copy_direction::host_to_device ? host : on_device),
        direction_(direction) {}

  /// All of the range in pieces, through our stream.
  void ours(byte_count piece) {
    for (byte_count at = 0; at < to_.size(); at += piece) {
      stream_->copy(to_.data() + at, from_.data() + at, std::min(piece, to_.size() - at), direction_);
    }
  }
  /// The same, by the run-time's call alone.
  void plain(byte_count piece) {
    const auto kind = direction_ == copy_direction::host_to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    for (byte_count at = 0; at < to_.size(); at += piece) {
      if (cudaMemcpyAsync(to_.data() + at, from_.data() + at, std::min(piece, to_.size() - at), kind,
                          native_stream(*stream_)) != cudaSuccess) {
        throw device_error("cudaMemcpyAsync failed");
      }
    }
  }
  void wait() { stream_->synchronize(); }

 private:
  std::unique_ptr<stream> stream_;
  std::span<std::byte> to_, from_;
  copy_direction direction_;
};

double seconds_of(const work& w) {
  const auto start = std::chrono::steady_clock::now();
  w();
  return to_seconds(std::chrono::steady_clock::now() - start);
}

/// Medians of paired rounds; who goes first alternates.
void compare(const settings& s, const char* name, byte_count bytes, const work& ours, const work& other) {
  std::vector<double> a, b, ratios;
  ours();
  other();
  for (unsigned round = 0; round < s.rounds; ++round) {
    const bool first = round % 2 == 0;
    const double x = seconds_of(first ? ours : other);
    const double y = seconds_of(first ? other : ours);
    a.push_back(static_cast<double>(bytes) / (first ? x : y) * 1e-9);
    b.push_back(static_cast<double>(bytes) / (first ? y : x) * 1e-9);
    ratios.push_back(a.back() / b.back());
  }
  fmt::print("{:<38} {:>9.2f} GB/s {:>9.2f} GB/s {:>7.3f}\n", name, store_bench::median(a), store_bench::median(b),
             store_bench::median(ratios));
}

void measure(const settings& s, const char* name, byte_count bytes, const work& w) {
  std::vector<double> rates;
  w();
  for (unsigned round = 0; round < s.rounds; ++round) {
    rates.push_back(static_cast<double>(bytes) / seconds_of(w) * 1e-9);
  }
  fmt::print("{:<38} {:>9.2f} GB/s\n", name, store_bench::median(rates));
}

void measure_copies(const settings& s, device& d, std::span<std::byte> host) {
  const byte_count half = d.arena().size() / 2;
  lane up(d, host.first(half), d.arena().first(half), copy_direction::host_to_device);
  lane down(d, host.subspan(half, half), d.arena().subspan(half, half), copy_direction::device_to_host);
  fmt::print("{:<38} {:>14} {:>14} {:>7}\n", fmt::format("copies of {}", format_bytes(half)), "this library",
             "cudaMemcpy", "ratio");
  const auto alone = [&](const char* name, lane& l, byte_count piece) {
    compare(
        s, name, half, [&] { l.ours(piece), l.wait(); }, [&] { l.plain(piece), l.wait(); });
  };
  alone("H2D in one", up, half);
  alone("H2D in 1 MiB", up, 1_MiB);
  alone("H2D in 64 KiB", up, 64_KiB);
  alone("D2H in one", down, half);
  alone("D2H in 1 MiB", down, 1_MiB);
  alone("D2H in 64 KiB", down, 64_KiB);
  compare(
      s, "both at once in 1 MiB (sum)", 2 * half, [&] { up.ours(1_MiB), down.ours(1_MiB), up.wait(), down.wait(); },
      [&] { up.plain(1_MiB), down.plain(1_MiB), up.wait(), down.wait(); });
}

void measure_kernels(const settings& s, device& d) {
  const std::size_t n = d.arena().size() / 5 / sizeof(float) / 4096 * 4096;
  const auto array = [&](std::size_t k) {
    return std::span<float>(reinterpret_cast<float*>(d.arena().data()) + k * n, n);
  };
  d.fill(d.arena().data(), std::byte{0}, d.arena().size());
  const std::span<double> leaves(reinterpret_cast<double*>(array(4).data()), norm_leaves(n));
  const std::span<bf16> narrow(reinterpret_cast<bf16*>(array(4).data()), n);
  const auto on = d.make_stream(stream_kind::compute);
  const auto kernels = cuda_update();
  const adamw_coefficients c = make_adamw_coefficients({}, 1);
  const byte_count bytes = n * sizeof(float);
  fmt::print("kernels over {} million elements, bytes read and written\n", n / 1'000'000);
  measure(s, "Adam", 7 * bytes, [&] {
    kernels->update(*on, array(0), array(1), array(2), array(3), c);
    on->synchronize();
  });
  measure(s, "gradient norm", bytes, [&] { kernels->leaf_sums(*on, array(1), leaves), on->synchronize(); });
  measure(s, "scale", 2 * bytes, [&] { cuda_scale(*on, array(1), 0.5F, array(0)), on->synchronize(); });
  measure(s, "cast to BF16", bytes + bytes / 2, [&] { cuda_cast(*on, array(1), narrow), on->synchronize(); });
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app{"Rates of a GPU's link and of the optimizer's kernels."};
  app.add_option("--mebibytes", s.mebibytes, "Of device memory, and of pinned host memory")->capture_default_str();
  app.add_option("--rounds", s.rounds, "Paired rounds")->check(CLI::Range(1U, 1000U))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const byte_count bytes = align_up(s.mebibytes * 1_MiB, 2_MiB);
    const auto d = cuda_device(0, bytes);
    const host_arena host(bytes);
    std::memset(host.memory().data(), 1, host.size());
    const pin_result pinned = d->pin(host.memory());
    fmt::print("{}, host memory {}\n", d->name(), pinned.refusal.empty() ? "pinned" : "NOT pinned: " + pinned.refusal);
    measure_copies(s, *d, host.memory());
    measure_kernels(s, *d);
    d->unpin(host.memory());
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
