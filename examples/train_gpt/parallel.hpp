#pragma once

#include <cstddef>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace train_gpt {

/// How many threads one step's compute uses: fixed for the process, so that two runs on one machine do the same sums.
/// 1 where a sanitizer cannot see the thread pool's synchronisation.
[[nodiscard]] inline int compute_threads() {
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
  static const int threads = omp_get_max_threads();
  return threads;
#else
  return 1;
#endif
}

/// Makes the calling thread's parallel regions (ours and the matrix library's) use `compute_threads()`. The setting
/// belongs to a thread, so whoever runs steps calls this on the thread that runs them.
inline void prepare_compute_thread() {
#ifdef _OPENMP
  omp_set_dynamic(0);
  omp_set_num_threads(compute_threads());
#endif
}

/// Ends the threads that the calling thread's parallel regions left waiting; its next region starts new ones. Whoever
/// goes on with other work calls this: while the process has more such threads than the machine has cores, the run-time
/// lets barriers sleep instead of spin, and every parallel region of the thread that runs the steps would pay for it.
inline void dismiss_compute_team() {
#ifdef _OPENMP
  omp_pause_resource_all(omp_pause_soft);
#endif
}

/// Calls `body(begin, end)` on contiguous parts of [0, count). What is computed per index must not depend on the parts:
/// then the result does not depend on the number of threads. `elements`: how many are touched per index; little work is
/// done on the calling thread alone. `body` must not throw.
template <typename Body>
void parallel_for(std::size_t count, std::size_t elements, const Body& body) {
#ifdef _OPENMP
  constexpr std::size_t worth_a_team = std::size_t{1} << 15U;
#pragma omp parallel if (count * elements >= worth_a_team)
  {
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());
    const auto self = static_cast<std::size_t>(omp_get_thread_num());
    body(count * self / threads, count * (self + 1) / threads);
  }
#else
  static_cast<void>(elements);
  body(std::size_t{0}, count);
#endif
}

}  // namespace train_gpt
