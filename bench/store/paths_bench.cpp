// Two paths as one: the rate of writing all pages and reading them all again, as a part of the sum of the paths'
// limits, iteration by iteration; then one path slows to a third in mid-run. FOREBAY_BENCH_DIRECTORY says where; the
// current directory otherwise. An idle drive or a file system in memory: what others do to a busy drive counts as well.
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/memory/host_arena.hpp>
#include <forebay/store/page_store.hpp>
#include <forebay/testing/rate_limited.hpp>

namespace forebay {
namespace {

using testing::path_limit;
using testing::rate_limited;

constexpr byte_count working_set = 256_MiB;
constexpr byte_count million = 1'000'000;
constexpr path_limit fast{300 * million, 300 * million};
constexpr path_limit slow{100 * million, 100 * million};
constexpr path_limit slowed{33 * million, 33 * million};

std::filesystem::path directory(const char* name) {
  const char* wanted = std::getenv("FOREBAY_BENCH_DIRECTORY");
  return (wanted == nullptr ? std::filesystem::current_path() : std::filesystem::path(wanted)) / name;
}

/// Keeps a bounded number of transfers of a list under way, in its order.
class stream_of_transfers {
 public:
  stream_of_transfers(page_store& store, std::size_t in_flight) : store_(store), most_(in_flight) {}

  void run(io::operation_kind kind, page_id page, std::byte* memory, std::vector<page_transfer>& room) {
    for (std::uint64_t chunk = 0; chunk < store_.chunk_count(page); ++chunk) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return in_flight_ < most_; });
      ++in_flight_;
      lock.unlock();
      page_transfer& t = room.at(chunk);
      t.kind = kind;
      t.page = page;
      t.chunk = chunk;
      t.memory = memory + chunk * store_.chunk_bytes();
      t.owner = this;
      t.complete = &stream_of_transfers::completed;
      store_.submit(t);
    }
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_flight_ == 0; });
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  static void completed(page_transfer& t, std::exception_ptr failure) noexcept {
    auto& self = *static_cast<stream_of_transfers*>(t.owner);
    const std::scoped_lock lock(self.mutex_);
    self.failure_ = failure != nullptr ? failure : self.failure_;
    --self.in_flight_;
    self.changed_.notify_all();
  }

  page_store& store_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t in_flight_ = 0;
  std::exception_ptr failure_;
};

/// A store over two directories, and one iteration over all its pages.
class two_paths {
 public:
  two_paths(byte_count page_bytes, bool adaptive, std::size_t in_flight)
      : memory_(working_set), limits_({fast, slow}), page_bytes_(page_bytes) {
    page_store_options o;
    o.paths.push_back({directory("bench-path-0"), working_set});
    o.paths.push_back({directory("bench-path-1"), working_set});
    o.io.faults = &limits_;
    o.checksums = false;
    o.adaptive = adaptive;
    store_.emplace(std::move(o));
    store_->register_memory(memory_.memory());
    store_->reserve(working_set);
    for (byte_count at = 0; at < working_set; at += page_bytes) {
      pages_.push_back(store_->allocate(page_bytes, "page"));
      transfers_.emplace_back(store_->chunk_count(pages_.back()));
    }
    stream_.emplace(*store_, in_flight);
  }

  void iterate() {
    for (std::size_t p = 0; p < pages_.size(); ++p) {
      store_->renew(pages_[p]);
      stream_->run(io::operation_kind::write, pages_[p], memory_.memory().data() + p * page_bytes_, transfers_[p]);
    }
    stream_->wait();
    for (std::size_t p = 0; p < pages_.size(); ++p) {
      stream_->run(io::operation_kind::read, pages_[p], memory_.memory().data() + p * page_bytes_, transfers_[p]);
    }
    stream_->wait();
  }
  void slow_down() { limits_.change(1, slowed); }

 private:
  host_arena memory_;
  rate_limited limits_;
  byte_count page_bytes_;
  std::optional<page_store> store_;
  std::vector<page_id> pages_;
  std::vector<std::vector<page_transfer>> transfers_;
  std::optional<stream_of_transfers> stream_;
};

double ratio_to_sum(two_paths& paths, double sum) {
  const auto start = std::chrono::steady_clock::now();
  paths.iterate();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return 2 * static_cast<double>(working_set) / seconds.count() / sum;
}

/// Counters: the ratio to the sum of the limits in each iteration; `slowed_k` is the k-th after the slow-down.
void paths_as_one(benchmark::State& state, bool adaptive) {
  constexpr int iterations = 5;
  const auto sum = static_cast<double>(fast.read + slow.read);
  const auto sum_slowed = static_cast<double>(fast.read + slowed.read);
  for (auto _ : state) {
    two_paths paths(static_cast<byte_count>(state.range(0)), adaptive, static_cast<std::size_t>(state.range(1)));
    for (int i = 1; i <= iterations; ++i) {
      state.counters["ratio_" + std::to_string(i)] = ratio_to_sum(paths, sum);
    }
    paths.slow_down();
    for (int i = 1; i <= iterations; ++i) {
      state.counters["slowed_" + std::to_string(i)] = ratio_to_sum(paths, sum_slowed);
    }
  }
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"page", "in_flight"});
  b->Args({static_cast<std::int64_t>(1_MiB), 64})->Args({static_cast<std::int64_t>(1_MiB), 256});
  b->Args({static_cast<std::int64_t>(16_MiB), 64})->Args({static_cast<std::int64_t>(256_MiB), 64});
  b->UseRealTime()->Unit(benchmark::kSecond)->Iterations(1);
}

BENCHMARK_CAPTURE(paths_as_one, adaptive, true)->Apply(sizes);
BENCHMARK_CAPTURE(paths_as_one, equal_shares, false)->Args({static_cast<std::int64_t>(16_MiB), 64})->Iterations(1);

}  // namespace
}  // namespace forebay
