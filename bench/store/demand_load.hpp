#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <forebay/store/page_store.hpp>

namespace forebay::store_bench {

inline constexpr byte_count demand_page = 16_MiB;
inline constexpr byte_count demand_chunk = 1_MiB;
inline constexpr std::uint8_t background_urgency = 2;

/// Counts per path what the kernel has, and which less urgent transfers start between the arrival and the end of an
/// urgent read. All reads are urgent, and one at a time is under way. Told of transfers by the ring's thread alone.
class kernel_watch final : public io::interceptor {
 public:
  kernel_watch(std::size_t paths, byte_count merge) : merge_(merge), paths_(paths) {}

  void announced(std::span<const int> files) noexcept override {
    for (std::size_t i = 0; i < files.size(); ++i) {
      paths_[i].file = files[i];
    }
  }
  std::int64_t before(const transfer& t) noexcept override {
    path& p = of(t.file);
    p.in_kernel += t.bytes;
    if (t.kind == io::operation_kind::read) {
      p.read = read_state::in_kernel;
    } else if (!continues(p.last, t)) {
      p.before_it += p.read.load() == read_state::waits ? 1U : 0U;
      p.behind_it += p.read.load() == read_state::in_kernel ? 1U : 0U;
    }
    p.last = t;
    return 0;
  }
  std::int64_t after(const transfer& t, std::int64_t outcome) noexcept override {
    path& p = of(t.file);
    p.in_kernel -= t.bytes;
    p.moved += t.bytes;
    if (t.kind == io::operation_kind::read) {
      p.read = read_state::none;
    }
    return outcome;
  }

  /// Around the submit of a read.
  void read_comes(std::size_t i) noexcept {
    paths_[i].before_it = 0;
    paths_[i].behind_it = 0;
    paths_[i].read = read_state::comes;
  }
  void read_has_come(std::size_t i) noexcept {
    read_state before = read_state::comes;
    paths_[i].read.compare_exchange_strong(before, read_state::waits);  // unless it has started
  }
  /// Less urgent transfers that started since `read_has_come`, before the read; and while the kernel had it.
  [[nodiscard]] unsigned before_it(std::size_t i) const noexcept { return paths_[i].before_it.load(); }
  [[nodiscard]] unsigned behind_it(std::size_t i) const noexcept { return paths_[i].behind_it.load(); }
  [[nodiscard]] byte_count in_kernel(std::size_t i) const noexcept { return paths_[i].in_kernel.load(); }
  [[nodiscard]] byte_count moved(std::size_t i) const noexcept { return paths_[i].moved.load(); }

 private:
  enum class read_state : std::uint8_t { none, comes, waits, in_kernel };
  struct path {
    int file = -1;
    transfer last{io::operation_kind::read, -1, 0, nullptr, 0};
    std::atomic<byte_count> in_kernel{0};
    std::atomic<byte_count> moved{0};
    std::atomic<read_state> read{read_state::none};
    std::atomic<unsigned> before_it{0};
    std::atomic<unsigned> behind_it{0};
  };

  /// Whether `t` is a further part of the merged transfer that `last` is in: those stay within stretches of the file.
  [[nodiscard]] bool continues(const transfer& last, const transfer& t) const noexcept {
    return last.kind == t.kind && last.offset + last.bytes == t.offset && last.offset / merge_ == t.offset / merge_;
  }
  [[nodiscard]] path& of(int file) noexcept {
    return *std::find_if(paths_.begin(), paths_.end(), [file](const path& p) { return p.file == file; });
  }

  byte_count merge_;
  std::deque<path> paths_;
};

/// A thread that keeps a window full of chunk writes, round and round over the pages.
class background_writes {
 public:
  background_writes(page_store& store, const std::vector<page_id>& pages, std::span<std::byte> memory)
      : store_(store), pages_(pages), slots_(memory.size() / demand_chunk) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      page_transfer& t = slots_[i];
      t.kind = io::operation_kind::write;
      t.memory = memory.data() + i * demand_chunk;
      t.urgency = background_urgency;
      t.owner = this;
      t.complete = &background_writes::completed;
      unused_.push_back(&t);
    }
  }
  background_writes(const background_writes&) = delete;
  background_writes& operator=(const background_writes&) = delete;

  void start(std::uint64_t chunks) {
    left_ = chunks;
    thread_ = std::thread([this] { serve(); });
  }
  /// \throws what a write ended with.
  void finish() {
    thread_.join();
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }
  void stop() {
    const std::scoped_lock lock(mutex_);
    left_ = 0;
    changed_.notify_all();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return left_ == 0 || !unused_.empty(); });
      if (left_ == 0) {
        break;
      }
      page_transfer& t = *unused_.back();
      unused_.pop_back();
      --left_;
      lock.unlock();
      const byte_count per_page = demand_page / demand_chunk;
      t.page = pages_[next_ / per_page % pages_.size()];
      t.chunk = next_++ % per_page;
      store_.submit(t);
      lock.lock();
    }
    changed_.wait(lock, [this] { return unused_.size() == slots_.size(); });
  }
  static void completed(page_transfer& t, std::exception_ptr failure) noexcept {
    auto& self = *static_cast<background_writes*>(t.owner);
    const std::scoped_lock lock(self.mutex_);
    self.failure_ = failure != nullptr ? failure : self.failure_;
    self.unused_.push_back(&t);
    self.changed_.notify_all();
  }

  page_store& store_;
  const std::vector<page_id>& pages_;
  std::vector<page_transfer> slots_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<page_transfer*> unused_;
  std::uint64_t left_ = 0;
  std::exception_ptr failure_;
  std::uint64_t next_ = 0;  // of the thread alone
  std::thread thread_;
};

struct demand {
  std::size_t path = 0;
  double seconds = 0;
  byte_count in_kernel = 0;  // of its path at its arrival
  byte_count moved = 0;      // by its path from its arrival to its end
  unsigned before_it = 0;
  unsigned behind_it = 0;
};

/// One urgent read at a time.
class urgent_reader {
 public:
  urgent_reader(page_store& store, kernel_watch& watch, std::span<std::byte> memory) : store_(store), watch_(watch) {
    transfer_.memory = memory.data();
    transfer_.owner = this;
    transfer_.complete = &urgent_reader::completed;
  }

  /// \throws what the read ended with.
  demand read(page_id page, std::uint64_t index) {
    transfer_.page = page;
    transfer_.chunk = index;
    done_ = false;
    demand d;
    d.path = store_.path_of(page, index);
    watch_.read_comes(d.path);
    const auto arrival = std::chrono::steady_clock::now();
    d.in_kernel = watch_.in_kernel(d.path);
    const byte_count moved = watch_.moved(d.path);
    store_.submit(transfer_);
    watch_.read_has_come(d.path);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    d.seconds = to_seconds(end_ - arrival);
    d.moved = watch_.moved(d.path) - moved;
    d.before_it = watch_.before_it(d.path);
    d.behind_it = watch_.behind_it(d.path);
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
    return d;
  }

 private:
  static void completed(page_transfer& t, std::exception_ptr failure) noexcept {
    auto& self = *static_cast<urgent_reader*>(t.owner);
    const std::scoped_lock lock(self.mutex_);
    self.end_ = std::chrono::steady_clock::now();
    self.failure_ = failure;
    self.done_ = true;
    self.changed_.notify_all();
  }

  page_store& store_;
  kernel_watch& watch_;
  page_transfer transfer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  time_point end_{};
  std::exception_ptr failure_;
};

}  // namespace forebay::store_bench
