// The Adam kernel against a plain loop with the same memory traffic (reads parameter, gradient, m and v; writes
// parameter, m and v in place), and the gradient norm against a plain read, alternating in one run: only their ratio
// means something on a machine that others use too.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/optimizer/adamw_kernel.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

#if defined(__x86_64__)
#define FOREBAY_VECTORISED __attribute__((target("avx2")))
#else
#define FOREBAY_VECTORISED
#endif

namespace {

using namespace forebay::literals;
using forebay::simd_level;

struct arrays {
  std::vector<float> p, g, m, v;
  explicit arrays(std::size_t n) : p(n, 0.5F), g(n, 1e-3F), m(n, 1e-3F), v(n, 1e-6F) {}
};

FOREBAY_VECTORISED void same_traffic(float* __restrict p, const float* __restrict g, float* __restrict m,
                                     float* __restrict v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    p[i] = p[i] + g[i];
    m[i] = m[i] + g[i];
    v[i] = v[i] + g[i];
  }
}

/// One read stream, summed in eight independent vectors so that additions do not wait for each other.
FOREBAY_VECTORISED float plain_read(const float* x, std::size_t n) {
  float lanes[64] = {};
  for (std::size_t i = 0; i + 64 <= n; i += 64) {
    for (std::size_t j = 0; j < 64; ++j) {
      lanes[j] += x[i + j];
    }
  }
  float sum = 0.0F;
  for (const float lane : lanes) {
    sum += lane;
  }
  return sum;
}

/// Runs work(first, count) on `threads` equal parts of n elements; returns seconds.
template <typename Work>
double timed(std::size_t n, unsigned threads, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t part = n / threads / 4096 * 4096;
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) {
    others.emplace_back([&, t] { work(t * part, t + 1 == threads ? n - t * part : part); });
  }
  work(0, threads == 1 ? n : part);
  for (std::thread& other : others) {
    other.join();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Alternates the two, and reports the elements per second of each, and the first over the second.
template <typename Ours, typename Plain>
void compare(benchmark::State& state, std::size_t n, const Ours& ours, const Plain& plain) {
  const auto threads = static_cast<unsigned>(state.range(1));
  const std::size_t rounds = std::max<std::size_t>(1, (std::size_t{1} << 22U) / n);  // long enough to be timed
  double our_seconds = 0.0;
  double plain_seconds = 0.0;
  const auto repeat = [rounds](const auto& work) {
    return [&work, rounds](std::size_t first, std::size_t count) {
      for (std::size_t r = 0; r < rounds; ++r) {
        work(first, count);
      }
    };
  };
  for (auto unused : state) {
    static_cast<void>(unused);
    plain_seconds += timed(n, threads, repeat(plain));
    const double seconds = timed(n, threads, repeat(ours));
    our_seconds += seconds;
    state.SetIterationTime(seconds);
  }
  const double elements = static_cast<double>(state.iterations()) * static_cast<double>(n * rounds);
  state.counters["elements/s"] = elements / our_seconds;
  state.counters["plain elements/s"] = elements / plain_seconds;
  state.counters["of plain loop"] = plain_seconds / our_seconds;
}

bool lacks(benchmark::State& state, simd_level level) {
  if (!supported(level) || !supported(simd_level::avx2)) {
    state.SkipWithError("this CPU lacks the instructions");
    return true;
  }
  return false;
}

void adamw(benchmark::State& state, simd_level level) {
  if (lacks(state, level)) {
    return;
  }
  const auto n = static_cast<std::size_t>(state.range(0));
  arrays a(n);
  const auto c = forebay::make_adamw_coefficients({}, 100, 0.9F);
  compare(
      state, n,
      [&](std::size_t first, std::size_t count) {
        const auto part = [&](std::vector<float>& x) { return std::span(x).subspan(first, count); };
        forebay::adamw_update(part(a.p), part(a.g), part(a.m), part(a.v), c, level);
      },
      [&](std::size_t first, std::size_t count) {
        same_traffic(a.p.data() + first, a.g.data() + first, a.m.data() + first, a.v.data() + first, count);
      });
}

void norm(benchmark::State& state, simd_level level) {
  if (lacks(state, level)) {
    return;
  }
  const auto n = static_cast<std::size_t>(state.range(0));
  const std::vector<float> g(n, 1e-3F);
  compare(
      state, n,
      [&](std::size_t first, std::size_t count) {
        benchmark::DoNotOptimize(forebay::sum_of_squares(std::span(g).subspan(first, count), level));
      },
      [&](std::size_t first, std::size_t count) { benchmark::DoNotOptimize(plain_read(g.data() + first, count)); });
}

void sizes(benchmark::internal::Benchmark* b) {
  const auto cpus = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  b->ArgNames({"elements", "threads"})->UseManualTime()->Unit(benchmark::kMillisecond);
  b->Args({std::int64_t{4} << 10U, 1})->Args({std::int64_t{256} << 10U, 1})->Args({std::int64_t{16} << 20U, 1});
  if (cpus > 1) {
    b->Args({std::int64_t{16} << 20U, cpus});
  }
}

BENCHMARK_CAPTURE(adamw, scalar, simd_level::scalar)->Apply(sizes);
BENCHMARK_CAPTURE(adamw, avx2, simd_level::avx2)->Apply(sizes);
BENCHMARK_CAPTURE(adamw, avx512, simd_level::avx512)->Apply(sizes);
BENCHMARK_CAPTURE(norm, scalar, simd_level::scalar)->Apply(sizes);
BENCHMARK_CAPTURE(norm, avx2, simd_level::avx2)->Apply(sizes);
BENCHMARK_CAPTURE(norm, avx512, simd_level::avx512)->Apply(sizes);

}  // namespace
