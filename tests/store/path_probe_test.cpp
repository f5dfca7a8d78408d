// The probe that finds depth and size of the transfers: its choice on tables, and what it does to a store.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/io/file.hpp>
#include <forebay/store/detail/path_probe.hpp>
#include <forebay/store/page_store.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_detail::choose_shape;
using store_detail::least_probed_share;
using store_detail::shape_rate;
using store_detail::shapes_to_try;
using store_detail::transfer_shape;
using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;

using pairs = std::vector<std::pair<byte_count, unsigned>>;

pairs as_pairs(const std::vector<transfer_shape>& shapes) {
  pairs result;
  for (const transfer_shape& shape : shapes) {
    result.emplace_back(shape.block, shape.depth);
  }
  return result;
}

TEST(shapes_to_try, go_from_little_in_flight_to_much_and_never_above_64_MiB) {
  EXPECT_EQ(as_pairs(shapes_to_try(0, 0)), (pairs{{256_KiB, 4},   // 1 MiB
                                                  {1_MiB, 4},     // 4 MiB
                                                  {256_KiB, 16},  //
                                                  {4_MiB, 4},     // 16 MiB
                                                  {1_MiB, 16},    //
                                                  {256_KiB, 64},  //
                                                  {4_MiB, 16},    // 64 MiB
                                                  {1_MiB, 64}}));
}

TEST(shapes_to_try, do_not_vary_what_is_given) {
  EXPECT_EQ(as_pairs(shapes_to_try(8, 0)), (pairs{{256_KiB, 8}, {1_MiB, 8}, {4_MiB, 8}}));
  EXPECT_EQ(as_pairs(shapes_to_try(0, 1_MiB)), (pairs{{1_MiB, 4}, {1_MiB, 16}, {1_MiB, 64}}));
  EXPECT_EQ(as_pairs(shapes_to_try(0, 4_KiB)), (pairs{{256_KiB, 4}, {256_KiB, 16}, {256_KiB, 64}}));
  EXPECT_EQ(as_pairs(shapes_to_try(0, 1_GiB)), (pairs{{4_MiB, 4}, {4_MiB, 16}}));
  EXPECT_EQ(as_pairs(shapes_to_try(100, 0)), (pairs{{256_KiB, 100}}));
  EXPECT_TRUE(shapes_to_try(1000, 0).empty());  // 250 MiB in flight with the smallest block
}

shape_rate rate(byte_count block, unsigned depth, double read, double write) { return {{block, depth}, read, write}; }

TEST(choose_shape, compares_the_time_for_a_byte_each_way) {
  EXPECT_DOUBLE_EQ(rate(1, 1, 1.0, 3.0).both(), 1.5);  // two bytes in 1 + 1/3 seconds
  EXPECT_DOUBLE_EQ(rate(1, 1, 2.0, 2.0).both(), 2.0);
  EXPECT_EQ(rate(1, 1, 0.0, 2.0).both(), 0.0);
  const auto chosen = choose_shape({rate(256_KiB, 4, 1.0, 3.0), rate(4_MiB, 16, 1.6, 1.6)});  // 1.5 and 1.6
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->shape.block, 4_MiB);
}

TEST(choose_shape, takes_the_least_in_flight_within_three_percent_of_the_best) {
  const std::vector<shape_rate> tried{rate(256_KiB, 4, 50, 50), rate(1_MiB, 4, 96.5, 96.5), rate(4_MiB, 4, 97.5, 97.5),
                                      rate(1_MiB, 64, 100, 100)};
  const auto chosen = choose_shape(tried);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->shape.block, 4_MiB);
  EXPECT_EQ(chosen->shape.depth, 4U);
  EXPECT_EQ(chosen->read, 97.5);
}

TEST(choose_shape, takes_larger_blocks_of_equally_much_in_flight_in_whatever_order) {
  std::vector<shape_rate> tried{rate(4_MiB, 4, 98, 98), rate(1_MiB, 16, 100, 100), rate(256_KiB, 64, 99, 99)};
  std::sort(tried.begin(), tried.end(), [](auto& a, auto& b) { return a.shape.block < b.shape.block; });
  do {
    const auto chosen = choose_shape(tried);
    ASSERT_TRUE(chosen.has_value());
    EXPECT_EQ(chosen->shape.block, 4_MiB);
  } while (std::next_permutation(tried.begin(), tried.end(),
                                 [](auto& a, auto& b) { return a.shape.block < b.shape.block; }));
}

TEST(choose_shape, leaves_out_what_is_not_known) {
  EXPECT_FALSE(choose_shape({}).has_value());
  EXPECT_FALSE(choose_shape({rate(1_MiB, 4, 5, 0), rate(1_MiB, 16, 0, 5)}).has_value());
  const auto chosen = choose_shape({rate(256_KiB, 4, 9, 0), rate(1_MiB, 16, 1, 1)});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->shape.block, 1_MiB);
}

TEST(choose_shape, holds_what_it_promises_on_random_tables) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> speed(0.9, 1.0);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<shape_rate> tried;
    for (const transfer_shape& shape : shapes_to_try(0, 0)) {
      const bool known = random() % 5 != 0;
      tried.push_back({shape, known ? speed(random) : 0, speed(random)});
    }
    const auto chosen = choose_shape(tried);
    for (const shape_rate& other : tried) {
      if (other.both() == 0) {
        continue;
      }
      ASSERT_TRUE(chosen.has_value());
      ASSERT_GE(chosen->both(), other.both() * 0.97 * (1 - 1e-12));
      if (other.shape.in_flight() < chosen->shape.in_flight()) {  // then it was too slow beside some other
        ASSERT_TRUE(std::any_of(tried.begin(), tried.end(),
                                [&](const shape_rate& best) { return other.both() < best.both() * 0.97; }));
      }
    }
  }
}

/// What a backend is asked, and an operation that ends as it should not.
struct asked {
  std::atomic<std::size_t> submits{0};
  std::atomic<std::size_t> completions{0};
  std::atomic<std::size_t> tunings{0};
  std::atomic<unsigned> depth{0};
  std::atomic<byte_count> merge{0};
  std::size_t fail_at = 0;  // counted from 1; 0: never
  io::result failure;
};

class watched_backend final : public io::backend {
 public:
  watched_backend(std::unique_ptr<io::backend> inner, asked& log) : inner_(std::move(inner)), log_(log) {}

  void submit(io::operation& op) noexcept override {
    if (++log_.submits == log_.fail_at) {
      ++log_.completions;
      op.complete(op, log_.failure);
      return;
    }
    auto* mine = new passage{this, op.complete, op.context};
    op.context = mine;
    op.complete = [](io::operation& done, io::result outcome) noexcept {
      const std::unique_ptr<passage> p(static_cast<passage*>(done.context));
      ++p->owner->log_.completions;
      done.complete = p->complete;
      done.context = p->context;
      done.complete(done, outcome);
    };
    inner_->submit(op);
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

  std::unique_ptr<io::backend> inner_;
  asked& log_;
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

TEST_F(path_probe, finds_one_of_the_shapes_and_tells_the_backend) {
  page_store store(options());
  expect_usual(store);
  store.reserve(least_probed_share);
  const storage_tuning tuning = store.tuning();
  ASSERT_TRUE(tuning.measured);
  ASSERT_EQ(tuning.paths.size(), 1U);
  const pairs all = as_pairs(shapes_to_try(0, 0));
  EXPECT_NE(std::find(all.begin(), all.end(), std::pair(tuning.merge, tuning.depth)), all.end());
  EXPECT_EQ(tuning.paths[0].depth, tuning.depth);
  EXPECT_EQ(tuning.paths[0].transfer, tuning.merge);
  EXPECT_GT(tuning.paths[0].read_bytes_per_second, 0);
  EXPECT_GT(tuning.paths[0].write_bytes_per_second, 0);
  EXPECT_EQ(log_.tunings.load(), 1U);
  EXPECT_EQ(log_.depth.load(), tuning.depth);
  EXPECT_EQ(log_.merge.load(), tuning.merge);
  EXPECT_EQ(log_.completions.load(), log_.submits.load());
  EXPECT_EQ(store.bytes_written(), 0U);  // of pages
  EXPECT_EQ(store.used(), 0U);
  const std::size_t once = log_.submits.load();
  store.reserve(2 * least_probed_share);
  EXPECT_EQ(log_.submits.load(), once);
}

TEST_F(path_probe, leaves_room_for_pages_with_the_right_contents) {
  page_store_options o = options();
  o.chunk = 256_KiB;
  page_store store(std::move(o));
  store.reserve(least_probed_share);
  ASSERT_TRUE(store.tuning().measured);
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
  page_store store(std::move(depth));
  store.reserve(least_probed_share);
  ASSERT_TRUE(store.tuning().measured);
  EXPECT_EQ(store.tuning().depth, 7U);
  EXPECT_EQ(log_.depth.load(), 7U);
  EXPECT_EQ(store.tuning().merge, log_.merge.load());
  EXPECT_NE(as_pairs(shapes_to_try(7, 0)), (pairs{}));
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
  EXPECT_TRUE(store.tuning().measured);
}

TEST_F(path_probe, that_meets_an_error_changes_nothing) {
  for (const io::result failure : {io::result{EIO, 0}, io::result{ENOSPC, 4_KiB}, io::result{0, 4_KiB}}) {
    for (const std::size_t fail_at : {1U, 3U, 17U, 60U, 200U}) {
      log_.submits = 0;
      log_.completions = 0;
      log_.fail_at = fail_at;
      log_.failure = failure;
      page_store store(options());
      EXPECT_NO_THROW(store.reserve(least_probed_share));
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
  page_store store(options(2));
  store.reserve(2 * least_probed_share);
  const storage_tuning tuning = store.tuning();
  ASSERT_EQ(tuning.paths.size(), 2U);
  EXPECT_EQ(tuning.depth, std::max(tuning.paths[0].depth, tuning.paths[1].depth));
  EXPECT_EQ(tuning.merge, std::max(tuning.paths[0].transfer, tuning.paths[1].transfer));
  const auto per_byte = [&](std::size_t i) {
    return 1 / tuning.paths[i].read_bytes_per_second + 1 / tuning.paths[i].write_bytes_per_second;
  };
  const std::vector<path_rate> now = store.measured_rates();
  EXPECT_NEAR(now[0].share / now[1].share, per_byte(1) / per_byte(0), 1e-6);
}

TEST_F(path_probe, leaves_given_weights_alone) {
  page_store_options o = options(2);
  o.paths[0].weight = 1;
  o.paths[1].weight = 3;
  o.paths[0].capacity = o.paths[1].capacity = 8 * least_probed_share;
  page_store store(std::move(o));
  store.reserve(4 * least_probed_share);
  ASSERT_TRUE(store.tuning().measured);
  EXPECT_DOUBLE_EQ(store.measured_rates()[0].share, 0.25);
}

}  // namespace
}  // namespace forebay
