// Reads and writes of whole sets of tensors through the store, beside a plain ring on the same drive in the same run.
// FOREBAY_BENCH_DIRECTORY says where; the current directory otherwise. Counters: CPU milliseconds per GB moved.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include <benchmark/benchmark.h>

#include <forebay/store/page_store.hpp>

#include "plain_ring.hpp"

namespace forebay {
namespace {

using store_bench::cpu_seconds;
using store_bench::huge_memory;
using store_bench::plain_ring;

constexpr byte_count working_set = 256_MiB;
constexpr unsigned depth = 16;

std::filesystem::path directory() {
  const char* wanted = std::getenv("FOREBAY_BENCH_DIRECTORY");
  return wanted == nullptr ? std::filesystem::current_path() : std::filesystem::path(wanted);
}

/// Transfers of all pages at once, and a wait for the last.
class mover {
 public:
  mover(page_store& store, std::vector<page_id> pages, std::byte* memory, byte_count page_bytes) : store_(store) {
    for (std::size_t p = 0; p < pages.size(); ++p) {
      for (std::uint64_t c = 0; c < store.chunk_count(pages[p]); ++c) {
        page_transfer t;
        t.page = pages[p];
        t.chunk = c;
        t.memory = memory + p * page_bytes + c * store.chunk_bytes();
        t.owner = this;
        t.complete = &mover::completed;
        transfers_.push_back(std::move(t));
      }
    }
  }
  void run(io::operation_kind kind) {
    left_ = transfers_.size();
    for (page_transfer& t : transfers_) {
      t.kind = kind;
      store_.submit(t);
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  static void completed(page_transfer& t, std::exception_ptr failure) noexcept {
    auto& self = *static_cast<mover*>(t.owner);
    const std::scoped_lock lock(self.mutex_);
    if (failure != nullptr) {
      self.failure_ = failure;
    }
    if (--self.left_ == 0) {
      self.changed_.notify_all();
    }
  }
  page_store& store_;
  std::vector<page_transfer> transfers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_ = 0;
  std::exception_ptr failure_;
};

void report(benchmark::State& state, double cpu) {
  const auto bytes = static_cast<double>(working_set) * static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["cpu_ms_per_GB"] = cpu * 1e3 / (bytes / 1e9);
}

void store_moves(benchmark::State& state, io::operation_kind kind, io::backend_kind backend, bool checksums) {
  const auto page_bytes = static_cast<byte_count>(state.range(0));
  const huge_memory memory(working_set);
  page_store_options o;
  o.paths.push_back({directory(), working_set});
  o.io.kind = backend;
  o.io.depth = depth;
  o.checksums = checksums;
  page_store store(std::move(o));
  store.register_memory({memory.data(), memory.size()});
  store.reserve(working_set);
  std::vector<page_id> pages;
  for (byte_count at = 0; at < working_set; at += page_bytes) {
    pages.push_back(store.allocate(page_bytes, "page"));
  }
  mover all(store, pages, memory.data(), page_bytes);
  all.run(io::operation_kind::write);  // fills the preallocated extents: what is measured is steady overwriting
  const double before = cpu_seconds();
  for (auto _ : state) {
    all.run(kind);
  }
  report(state, cpu_seconds() - before);
}

void ring_moves(benchmark::State& state, io::operation_kind kind) {
  const auto block = std::min<byte_count>(static_cast<byte_count>(state.range(0)), 1_MiB);
  const huge_memory memory(working_set);
  plain_ring ring(directory(), working_set, memory, depth);
  ring.move(false, working_set, block);
  const double before = cpu_seconds();
  for (auto _ : state) {
    ring.move(kind == io::operation_kind::read, working_set, block);
  }
  report(state, cpu_seconds() - before);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const byte_count bytes : {64_KiB, 256_KiB, 1_MiB, 4_MiB, 64_MiB}) {
    b->Arg(static_cast<std::int64_t>(bytes));
  }
  b->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(1.0);
}

BENCHMARK_CAPTURE(ring_moves, read, io::operation_kind::read)->Apply(sizes);
BENCHMARK_CAPTURE(store_moves, read, io::operation_kind::read, io::backend_kind::automatic, true)->Apply(sizes);
BENCHMARK_CAPTURE(store_moves, read_unchecked, io::operation_kind::read, io::backend_kind::automatic, false)
    ->Apply(sizes);
BENCHMARK_CAPTURE(store_moves, read_threads, io::operation_kind::read, io::backend_kind::threads, true)->Apply(sizes);
BENCHMARK_CAPTURE(ring_moves, write, io::operation_kind::write)->Apply(sizes);
BENCHMARK_CAPTURE(store_moves, write, io::operation_kind::write, io::backend_kind::automatic, true)->Apply(sizes);
BENCHMARK_CAPTURE(store_moves, write_unchecked, io::operation_kind::write, io::backend_kind::automatic, false)
    ->Apply(sizes);
BENCHMARK_CAPTURE(store_moves, write_threads, io::operation_kind::write, io::backend_kind::threads, true)->Apply(sizes);

}  // namespace
}  // namespace forebay
