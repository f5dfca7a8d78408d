// What the probe that finds depth and size of the transfers does to a store.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/io/file.hpp>
#include <forebay/store/detail/path_probe.hpp>
#include <forebay/store/page_store.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_detail::least_probed_share;
using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;

/// What a backend is asked, and an operation that ends as it should not.
struct asked {
  std::atomic<std::size_t> submits{0};
  std::atomic<std::size_t> completions{0};
  std::atomic<std::size_t> tunings{0};
  std::atomic<unsigned> depth{0};
  std::atomic<byte_count> merge{0};
  std::size_t fail_at = 0;  // counted from 1; 0: never
  io::result failure;
  std::atomic<bool> pretends{false};  // moves nothing and says that it has: a drive that is fast enough anywhere
};

class watched_backend final : public io::backend {
 public:
  watched_backend(std::unique_ptr<io::backend> inner, asked& log)
      : inner_(std::move(inner)), log_(log), thread_([this] { pretend(); }) {}
  ~watched_backend() override {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
    inner_.reset();
  }

  void submit(io::operation& op) noexcept override {
    if (++log_.submits == log_.fail_at) {
      ++log_.completions;
      op.complete(op, log_.failure);
    } else if (log_.pretends.load()) {
      const std::scoped_lock lock(mutex_);
      pretended_.push_back(&op);
      changed_.notify_all();
    } else {
      auto* mine = new passage{this, op.complete, op.context};
      op.context = mine;
      op.complete = &watched_backend::passed;
      inner_->submit(op);
    }
  }
  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }
  void register_files(std::span<const int> files) override { inner_->register_files(files); }
  void tune(unsigned depth, byte_count merge) override {
    ++log_.tunings;
    log_.depth = depth;
    log_.merge = merge;
    inner_->tune(depth, merge);
  }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::vector<std::string> degradations() const override { return inner_->degradations(); }

 private:
  struct passage {
    watched_backend* owner;
    void (*complete)(io::operation&, io::result) noexcept;
    void* context;
  };

  static void passed(io::operation& op, io::result outcome) noexcept {
    const std::unique_ptr<passage> p(static_cast<passage*>(op.context));
    ++p->owner->log_.completions;
    op.complete = p->complete;
    op.context = p->context;
    op.complete(op, outcome);
  }
  void pretend() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !pretended_.empty(); });
      if (pretended_.empty()) {
        return;
      }
      io::operation& op = *pretended_.front();
      pretended_.pop_front();
      lock.unlock();
      ++log_.completions;
      op.complete(op, {0, op.bytes});
      lock.lock();
    }
  }

  std::unique_ptr<io::backend> inner_;
  asked& log_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<io::operation*> pretended_;
  bool stop_ = false;
  std::thread thread_;
};

class path_probe : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!io::direct_file::create(directory_.path() / "trial").layout().direct) {
      GTEST_SKIP() << "no direct transfers in " << directory_.path();
    }
    try {
      static_cast<void>(io::make_backend({.kind = io::backend_kind::uring}));
    } catch (const unsupported_error& refused) {
      GTEST_SKIP() << refused.what();
    }
  }

  page_store_options options(std::size_t paths = 1) {
    page_store_options o;
    for (std::size_t i = 0; i < paths; ++i) {
      o.paths.push_back({directory_.path() / std::to_string(i), 2 * least_probed_share});
    }
    o.io.wrap = [this](std::unique_ptr<io::backend> made) -> std::unique_ptr<io::backend> {
      return std::make_unique<watched_backend>(std::move(made), log_);
    };
    return o;
  }

  static bool all_measured(const page_store& store) {
    const storage_tuning tuning = store.tuning();
    return std::all_of(tuning.paths.begin(), tuning.paths.end(), [](const path_tuning& p) { return p.depth > 0; });
  }

  /// A store with a probe that had the time that it needs, even where the machine is busy with something else.
  std::unique_ptr<page_store> measured_store(const page_store_options& o, byte_count bytes) {
    log_.pretends = true;
    std::unique_ptr<page_store> store;
    for (int tries = 0; tries < 20 && (store == nullptr || !all_measured(*store)); ++tries) {
      store.reset();
      log_.submits = log_.completions = log_.tunings = 0;
      store = std::make_unique<page_store>(o);
      store->reserve(bytes);
    }
    log_.pretends = false;
    return store;
  }

  void expect_usual(const page_store& store) {
    const storage_tuning tuning = store.tuning();
    EXPECT_FALSE(tuning.measured);
    EXPECT_EQ(tuning.depth, io::usual_depth);
    EXPECT_EQ(tuning.merge, io::usual_merge);
    for (const path_tuning& path : tuning.paths) {
      EXPECT_EQ(path.depth, 0U);
      EXPECT_EQ(path.read_bytes_per_second, 0);
    }
    EXPECT_EQ(log_.tunings.load(), 0U);
  }

  scratch_directory directory_;
  asked log_;
};

TEST_F(path_probe, finds_depth_and_size_and_tells_the_backend) {
  const std::unique_ptr<page_store> store = measured_store(options(), least_probed_share);
  const storage_tuning tuning = store->tuning();
  ASSERT_TRUE(tuning.measured);
  ASSERT_EQ(tuning.paths.size(), 1U);
  EXPECT_TRUE(tuning.merge == 256_KiB || tuning.merge == 1_MiB || tuning.merge == 4_MiB);
  EXPECT_TRUE(tuning.depth == 4 || tuning.depth == 16 || tuning.depth == 64);
  EXPECT_EQ(tuning.paths[0].depth, tuning.depth);
  EXPECT_EQ(tuning.paths[0].transfer, tuning.merge);
  EXPECT_GT(tuning.paths[0].read_bytes_per_second, 0);
  EXPECT_GT(tuning.paths[0].write_bytes_per_second, 0);
  EXPECT_EQ(log_.tunings.load(), 1U);
  EXPECT_EQ(log_.depth.load(), tuning.depth);
  EXPECT_EQ(log_.merge.load(), tuning.merge);
  EXPECT_EQ(log_.completions.load(), log_.submits.load());
  EXPECT_EQ(store->bytes_written(), 0U);  // of pages
  EXPECT_EQ(store->used(), 0U);
  const std::size_t once = log_.submits.load();
  store->reserve(2 * least_probed_share);
  EXPECT_EQ(log_.submits.load(), once);
}

TEST_F(path_probe, leaves_room_for_pages_with_the_right_contents) {
  page_store_options o = options();
  o.chunk = 256_KiB;
  page_store store(std::move(o));
  store.reserve(least_probed_share);
  EXPECT_GT(log_.submits.load(), 0U);
  constexpr byte_count bytes = 20_MiB + 12'345;
  constexpr std::size_t count = 4;  // over all that the probe has written, and beyond
  std::vector<page_id> pages;
  guarded_buffer memory(store.padded_bytes(bytes));
  page_mover mover(store);
  for (std::size_t i = 0; i < count; ++i) {
    pages.push_back(store.allocate(bytes, "page " + std::to_string(i)));
    EXPECT_THROW(mover.read(pages[i], memory.data()), usage_error);  // what the probe wrote is no content
    const std::vector<std::byte> wanted = random_bytes(bytes, i);
    std::copy(wanted.begin(), wanted.end(), memory.data());
    mover.write(pages[i], memory.data());
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::fill_n(memory.data(), bytes, std::byte{0});
    mover.read(pages[i], memory.data());
    const std::vector<std::byte> wanted = random_bytes(bytes, i);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), memory.data()));
  }
  EXPECT_TRUE(memory.canaries_intact());
}

TEST_F(path_probe, keeps_what_is_given) {
  page_store_options both = options();
  both.io.depth = 7;
  both.io.merge = 128_KiB;
  {
    page_store store(std::move(both));
    store.reserve(least_probed_share);
    EXPECT_EQ(log_.submits.load(), 0U);
    EXPECT_EQ(log_.tunings.load(), 0U);
    EXPECT_EQ(store.tuning().depth, 7U);
    EXPECT_EQ(store.tuning().merge, 128_KiB);
    EXPECT_FALSE(store.tuning().measured);
  }
  page_store_options depth = options();
  depth.io.depth = 7;
  const std::unique_ptr<page_store> store = measured_store(depth, least_probed_share);
  ASSERT_TRUE(store->tuning().measured);
  EXPECT_EQ(store->tuning().depth, 7U);
  EXPECT_EQ(log_.depth.load(), 7U);
  EXPECT_EQ(store->tuning().merge, log_.merge.load());
}

TEST_F(path_probe, does_nothing_where_there_is_nothing_to_measure) {
  io::interceptor idle;
  const auto with = [&](byte_count bytes, auto&& change) {
    page_store_options o = options();
    change(o);
    page_store store(std::move(o));
    store.reserve(bytes);
    EXPECT_EQ(log_.submits.load(), 0U);
    expect_usual(store);
  };
  with(least_probed_share - 4_KiB, [](page_store_options&) {});
  with(least_probed_share, [&](page_store_options& o) { o.io.faults = &idle; });
  with(least_probed_share, [](page_store_options& o) { o.paths[0].read_bytes_per_second = 1_GiB; });
  with(least_probed_share, [](page_store_options& o) { o.paths[0].write_bytes_per_second = 1_GiB; });
  with(least_probed_share, [](page_store_options& o) { o.io.kind = io::backend_kind::threads; });
  with(least_probed_share, [](page_store_options& o) { o.direct = false; });
  page_store store(options());
  store.reserve(1_MiB);
  const page_id page = store.allocate(1_MiB, "a page");
  store.reserve(least_probed_share);  // the page may hold something
  EXPECT_EQ(log_.submits.load(), 0U);
  expect_usual(store);
  store.free(page);
  store.reserve(least_probed_share);
  EXPECT_GT(log_.submits.load(), 0U);
}

TEST_F(path_probe, that_meets_an_error_changes_nothing) {
  for (const io::result failure : {io::result{EIO, 0}, io::result{ENOSPC, 4_KiB}, io::result{0, 4_KiB}}) {
    for (const std::size_t fail_at : {1U, 3U, 17U, 60U, 200U}) {
      log_.submits = 0;
      log_.completions = 0;
      log_.fail_at = fail_at;
      log_.failure = failure;
      log_.pretends = true;
      page_store store(options());
      EXPECT_NO_THROW(store.reserve(least_probed_share));
      log_.pretends = false;
      EXPECT_GE(log_.submits.load(), fail_at);
      EXPECT_EQ(log_.completions.load(), log_.submits.load());
      expect_usual(store);
      log_.fail_at = 0;
      guarded_buffer memory(4_MiB);
      page_mover mover(store);
      const page_id page = store.allocate(4_MiB, "a page");
      const std::vector<std::byte> wanted = random_bytes(4_MiB, fail_at);
      std::copy(wanted.begin(), wanted.end(), memory.data());
      mover.write(page, memory.data());
      std::fill_n(memory.data(), 4_MiB, std::byte{0});
      mover.read(page, memory.data());
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), memory.data()));
    }
  }
}

TEST_F(path_probe, of_two_paths_serves_the_more_demanding_and_weighs_them) {
  const std::unique_ptr<page_store> store = measured_store(options(2), 2 * least_probed_share);
  const storage_tuning tuning = store->tuning();
  ASSERT_TRUE(tuning.paths[0].depth > 0 && tuning.paths[1].depth > 0);
  ASSERT_EQ(tuning.paths.size(), 2U);
  EXPECT_EQ(tuning.depth, std::max(tuning.paths[0].depth, tuning.paths[1].depth));
  EXPECT_EQ(tuning.merge, std::max(tuning.paths[0].transfer, tuning.paths[1].transfer));
  const auto per_byte = [&](std::size_t i) {
    return 1 / tuning.paths[i].read_bytes_per_second + 1 / tuning.paths[i].write_bytes_per_second;
  };
  const std::vector<path_rate> now = store->measured_rates();
  EXPECT_NEAR(now[0].share / now[1].share, per_byte(1) / per_byte(0), 1e-6);
}

TEST_F(path_probe, leaves_given_weights_alone) {
  page_store_options o = options(2);
  o.paths[0].weight = 1;
  o.paths[1].weight = 3;
  o.paths[0].capacity = o.paths[1].capacity = 8 * least_probed_share;
  const std::unique_ptr<page_store> store = measured_store(o, 4 * least_probed_share);
  ASSERT_TRUE(store->tuning().measured);
  EXPECT_DOUBLE_EQ(store->measured_rates()[0].share, 0.25);
}

}  // namespace
}  // namespace forebay
