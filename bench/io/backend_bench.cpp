// What one operation costs beside the device's part: many small reads of /dev/zero, which never wait.
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <forebay/io/backend.hpp>

namespace forebay {
namespace {

constexpr std::size_t count = 1024;
constexpr byte_count bytes = 4_KiB;

struct round {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t left = 0;
};

void small_reads(benchmark::State& state, io::backend_kind kind) {
  const auto backend = io::make_backend({.kind = kind, .depth = static_cast<unsigned>(state.range(0))});
  const int file = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  std::vector<std::byte> memory(count * bytes);
  backend->register_memory(memory);
  const std::vector<int> files{file};
  backend->register_files(files);
  round all;
  std::vector<io::operation> ops(count);
  for (std::size_t i = 0; i < count; ++i) {
    ops[i].file = file;
    ops[i].offset = i * bytes;
    ops[i].memory = memory.data() + i * bytes;
    ops[i].bytes = bytes;
    ops[i].context = &all;
    ops[i].complete = [](io::operation& self, io::result) noexcept {
      auto& r = *static_cast<round*>(self.context);
      const std::scoped_lock lock(r.mutex);
      if (--r.left == 0) {
        r.changed.notify_all();
      }
    };
  }
  for (auto _ : state) {
    all.left = count;
    for (io::operation& op : ops) {
      backend->submit(op);
    }
    std::unique_lock lock(all.mutex);
    all.changed.wait(lock, [&] { return all.left == 0; });
  }
  ::close(file);
  state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
}

BENCHMARK_CAPTURE(small_reads, automatic, io::backend_kind::automatic)->Arg(1)->Arg(16)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(small_reads, threads, io::backend_kind::threads)->Arg(1)->Arg(16)->Arg(64)->UseRealTime();

}  // namespace
}  // namespace forebay
