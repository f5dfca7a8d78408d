#pragma once

#include <chrono>

#include <sys/resource.h>

#include <forebay/base/bytes.hpp>

namespace forebay::store_bench {

/// What one pass took.
struct cost {
  byte_count bytes = 0;
  double seconds = 0.0;
  double cpu_seconds = 0.0;  ///< user and system time of the whole process, kernel workers included

  [[nodiscard]] double gigabytes_per_second() const { return static_cast<double>(bytes) / seconds * 1e-9; }
  [[nodiscard]] double cpu_ms_per_gigabyte() const { return cpu_seconds * 1e3 / (static_cast<double>(bytes) * 1e-9); }
};

/// Processor time of this process so far, user and system, in seconds.
inline double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Runs `work`, which moves `bytes`.
template <typename Work>
[[nodiscard]] cost measure(byte_count bytes, Work&& work) {
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {bytes, took.count(), cpu_seconds() - cpu};
}

}  // namespace forebay::store_bench
