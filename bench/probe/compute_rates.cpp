#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <forebay/optimizer/adamw_kernel.hpp>

#include "../store/measure.hpp"
#include "../store/statistics.hpp"
#include "rates.hpp"

namespace forebay::probe {
namespace {

constexpr byte_count bytes_per_element = 28;  // reads parameter, gradient, m, v; writes parameter, m, v
constexpr byte_count slice_unit = 4_KiB;

/// Runs `work(first, end)` over [0, total) in equal slices, one a thread.
void on_threads(unsigned threads, byte_count total, const std::function<void(byte_count, byte_count)>& work) {
  const byte_count slice = align_up(ceil_div(total, threads), slice_unit);
  std::vector<std::thread> others;
  for (byte_count at = slice; at < total; at += slice) {
    others.emplace_back(work, at, std::min(at + slice, total));
  }
  work(0, std::min(slice, total));
  for (std::thread& t : others) {
    t.join();
  }
}

/// The median of `units` per second.
template <typename Work>
double rate_of(byte_count units, const effort& e, Work&& work) {
  std::vector<double> rates;
  work();
  for (unsigned round = 0; round < e.rounds; ++round) {
    rates.push_back(static_cast<double>(units) / store_bench::measure(units, work).seconds);
  }
  return store_bench::median(rates);
}

}  // namespace

void measure_copies(std::span<std::byte> memory, const effort& e, plan::compute_rates& to) {
  to.threads = std::max(std::thread::hardware_concurrency(), 1U);
  const byte_count half = align_down(memory.size() / 2, slice_unit);
  const auto copy = [&](byte_count first, byte_count end) {
    std::memcpy(memory.data() + half + first, memory.data() + first, end - first);
  };
  to.copy_one_thread = rate_of(half, e, [&] { on_threads(1, half, copy); });
  to.copy_all_threads = rate_of(half, e, [&] { on_threads(to.threads, half, copy); });
}

void measure_adam(std::span<std::byte> memory, const effort& e, plan::compute_rates& to) {
  to.threads = std::max(std::thread::hardware_concurrency(), 1U);
  const byte_count elements = align_down(memory.size() / (4 * sizeof(float)), slice_unit);
  const std::span<float> all(reinterpret_cast<float*>(memory.data()), elements * 4);
  std::fill(all.begin(), all.end(), 0.5F);
  const adamw_coefficients c = make_adamw_coefficients({}, 1);
  const auto update = [&](byte_count first, byte_count end) {
    const auto part = [&](unsigned array) { return all.subspan(array * elements + first, end - first); };
    adamw_update(part(0), part(1), part(2), part(3), c);
  };
  to.adam_elements = rate_of(elements, e, [&] { on_threads(to.threads, elements, update); });
  to.adam_bytes = to.adam_elements * static_cast<double>(bytes_per_element);
}

}  // namespace forebay::probe
