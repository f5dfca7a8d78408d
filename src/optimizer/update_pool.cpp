#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <forebay/memory/topology.hpp>
#include <forebay/optimizer/detail/update_pool.hpp>
#include <new>
#include <optional>

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

update_pool::update_pool(unsigned threads)
    : impl_(std::make_unique<impl>(static_cast<int>(threads != 0 ? threads : topology{}.usable_cpus()))) {}

update_pool::~update_pool() = default;

void update_pool::for_each(std::size_t pieces, unique_function<void(std::size_t)> work) {
  if (pieces <= 1 || impl_->arena.max_concurrency() == 1) {
    for (std::size_t i = 0; i < pieces; ++i) {
      work(i);
    }
    return;
  }
  // TBB orders the calls itself; the counter says so in terms that a race detector, which sees only our side, follows.
  std::atomic<std::size_t> done{0};
  std::atomic<bool> started{false};
  started.store(true, std::memory_order_release);
  impl_->arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, pieces, [&](std::size_t i) {
      static_cast<void>(started.load(std::memory_order_acquire));
      work(i);
      done.fetch_add(1, std::memory_order_release);
    });
  });
  static_cast<void>(done.load(std::memory_order_acquire));
}

}  // namespace forebay::detail
