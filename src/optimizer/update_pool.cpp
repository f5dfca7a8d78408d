#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <forebay/memory/topology.hpp>
#include <forebay/optimizer/detail/update_pool.hpp>

namespace forebay::detail {

struct update_pool::impl {
  explicit impl(int threads) : arena(threads) {
    // TBB makes no more workers than CPUs unless told so; a limit that the program itself has set still holds.
    if (threads > tbb::info::default_concurrency()) {
      more_workers.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
    }
  }
  ~impl() {
    arena.terminate();
    more_workers.reset();
    // Joins TBB's workers, so that no thread outlives us; refused, rightly, while others in this process use TBB.
    static_cast<void>(tbb::finalize(scheduler, std::nothrow));
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  tbb::task_scheduler_handle scheduler{tbb::attach{}};
  std::optional<tbb::global_control> more_workers;
  tbb::task_arena arena;
};

namespace {

int arena_size(unsigned threads) {
  constexpr unsigned most = 4096;  // far more than any machine has, and TBB counts in int
  return static_cast<int>(std::min(most, threads != 0 ? threads : topology{}.usable_cpus()));
}

}  // namespace

update_pool::update_pool(unsigned threads) : impl_(std::make_unique<impl>(arena_size(threads))) {}

update_pool::~update_pool() = default;

namespace {

#if defined(__SANITIZE_THREAD__)
#define FOREBAY_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FOREBAY_THREAD_SANITIZER 1
#endif
#endif

#if defined(FOREBAY_THREAD_SANITIZER)
// The detector does not see into the TBB library and takes all that it orders for races. The same pieces on plain
// threads: what is of interest is what the pieces do.
template <typename Work>
void run_pieces(tbb::task_arena& arena, std::size_t pieces, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < arena.max_concurrency(); ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next.fetch_add(1); i < pieces; i = next.fetch_add(1)) {
        work(i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}
#else
template <typename Work>
void run_pieces(tbb::task_arena& arena, std::size_t pieces, const Work& work) {
  arena.execute([&] { tbb::parallel_for(std::size_t{0}, pieces, work); });
}
#endif

}  // namespace

void update_pool::for_each(std::size_t pieces, unique_function<void(std::size_t)> work) {
  if (pieces <= 1 || impl_->arena.max_concurrency() == 1) {
    for (std::size_t i = 0; i < pieces; ++i) {
      work(i);
    }
    return;
  }
  run_pieces(impl_->arena, pieces, [&work](std::size_t i) { work(i); });
}

}  // namespace forebay::detail
