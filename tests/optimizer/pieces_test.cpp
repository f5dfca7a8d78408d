#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include <forebay/optimizer/detail/pieces.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

namespace forebay::detail {
namespace {

const std::vector<std::size_t>& sizes() {
  static const std::vector<std::size_t> all{1, 3, 0, 16'384, 16'385, 4096, 4097, 300'000, 17};
  return all;
}

std::vector<std::vector<float>> noise(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> tensors;
  for (const std::size_t n : sizes()) {
    tensors.emplace_back(n);
    for (float& x : tensors.back()) {
      x = normal(random);
    }
  }
  return tensors;
}

TEST(pieces, each_piece_runs_once_on_any_number_of_threads) {
  for (const unsigned threads : {0U, 1U, 2U, 5U}) {
    update_pool pool(threads);
    for (const std::size_t n : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> calls(n);
      pool.for_each(n, [&](std::size_t i) { calls[i].fetch_add(1); });
      for (const std::atomic<int>& count : calls) {
        EXPECT_EQ(count.load(), 1);
      }
    }
  }
}

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(pieces, no_thread_outlives_the_pool) {
  std::thread([] {}).join();  // a sanitizer's own thread comes with the first one
  const std::size_t before = threads_of_this_process();
  std::atomic<std::size_t> during{0};
  {
    update_pool pool(4);
    pool.for_each(10'000, [&](std::size_t i) {
      if (i % 1000 == 0) {
        during.store(std::max(during.load(), threads_of_this_process()));
      }
    });
  }
  EXPECT_GT(during.load(), before);
  // A thread that was joined leaves the kernel's list a moment later.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads_of_this_process() != before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(pieces, sums_are_those_of_one_thread) {
  const std::vector<std::vector<float>> gradients = noise(1);
  for (const unsigned threads : {1U, 2U, 4U}) {
    update_pool pool(threads);
    std::vector<double> sums(gradients.size(), -1.0);
    std::vector<norm_item> items;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      items.push_back({gradients[k], &sums[k]});
    }
    norm_all(items, pool);
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      EXPECT_EQ(sums[k], sum_of_squares(gradients[k])) << k << ", " << threads << " threads";
    }
  }
}

TEST(pieces, updates_are_those_of_one_call_per_tensor) {
  const std::vector<std::vector<float>> gradients = noise(2);
  const adamw_coefficients decayed = make_adamw_coefficients({.weight_decay = 0.1F}, 1, 0.5F);
  const adamw_coefficients plain = make_adamw_coefficients({}, 1, 0.5F);
  const auto coefficients = [&](std::size_t k) { return k % 2 == 0 ? &decayed : &plain; };
  std::vector<std::vector<float>> p = noise(3);
  std::vector<std::vector<float>> m = noise(4);
  std::vector<std::vector<float>> v(p.size());
  for (std::size_t k = 0; k < p.size(); ++k) {
    v[k].assign(p[k].size(), 0.25F);
  }
  auto expected_p = p, expected_m = m, expected_v = v;
  for (std::size_t k = 0; k < p.size(); ++k) {
    adamw_update(expected_p[k], gradients[k], expected_m[k], expected_v[k], *coefficients(k));
  }
  for (const unsigned threads : {1U, 2U, 4U}) {
    update_pool pool(threads);
    auto got_p = p, got_m = m, got_v = v;
    std::vector<update_item> items;
    for (std::size_t k = 0; k < p.size(); ++k) {
      items.push_back({got_p[k], gradients[k], got_m[k], got_v[k], coefficients(k)});
    }
    update_all(items, pool);
    EXPECT_EQ(got_p, expected_p) << threads;
    EXPECT_EQ(got_m, expected_m) << threads;
    EXPECT_EQ(got_v, expected_v) << threads;
  }
}

}  // namespace
}  // namespace forebay::detail
