// The choice of depth and size of the transfers on tables of rates.
#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/store/detail/path_probe.hpp>

namespace forebay::store_detail {
namespace {

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

shape_rate even(byte_count block, unsigned depth, double bytes_per_second) {
  return rate(block, depth, bytes_per_second, bytes_per_second);
}

TEST(choose_shape, takes_the_largest_block_within_three_percent_of_the_best_and_then_the_least_depth) {
  const auto of = [](const std::vector<shape_rate>& tried) {
    const auto chosen = choose_shape(tried);
    return chosen ? std::pair(chosen->shape.block, chosen->shape.depth) : std::pair(byte_count{0}, 0U);
  };
  // 4 MiB equals the best, and less depth does for it.
  EXPECT_EQ(of({even(4_MiB, 4, 97.5), even(4_MiB, 16, 99), even(4_MiB, 64, 100)}), std::pair(4_MiB, 4U));
  EXPECT_EQ(of({even(4_MiB, 4, 96.5), even(4_MiB, 16, 99), even(4_MiB, 64, 100)}), std::pair(4_MiB, 16U));
  EXPECT_EQ(of({even(1_MiB, 4, 100), even(4_MiB, 4, 97.5)}), std::pair(4_MiB, 4U));
  EXPECT_EQ(of({even(1_MiB, 4, 100), even(4_MiB, 4, 96.5)}), std::pair(1_MiB, 4U));
  // Smaller blocks get the depth that they need, even where they stay below the best.
  EXPECT_EQ(of({even(256_KiB, 4, 40), even(256_KiB, 16, 60), even(256_KiB, 64, 61), even(4_MiB, 4, 100)}),
            std::pair(4_MiB, 16U));
  EXPECT_EQ(of({even(256_KiB, 4, 40), even(256_KiB, 16, 60), even(256_KiB, 64, 62), even(4_MiB, 4, 100)}),
            std::pair(4_MiB, 64U));
  // Larger ones are not made, so that what they need is of no interest.
  EXPECT_EQ(of({even(1_MiB, 4, 100), even(4_MiB, 4, 50), even(4_MiB, 16, 80)}), std::pair(1_MiB, 4U));
}

TEST(choose_shape, tells_the_best_rates_of_the_block_within_the_depth) {
  const auto chosen = choose_shape({rate(256_KiB, 4, 1, 1), rate(256_KiB, 16, 4, 4), rate(4_MiB, 4, 8, 10),
                                    rate(4_MiB, 16, 9, 9), rate(4_MiB, 64, 9.1, 9.1)});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->shape.depth, 16U);
  EXPECT_EQ(chosen->read, 9);
  EXPECT_EQ(chosen->write, 9);
}

TEST(choose_shape, leaves_out_what_is_not_known) {
  EXPECT_FALSE(choose_shape({}).has_value());
  EXPECT_FALSE(choose_shape({rate(1_MiB, 4, 5, 0), rate(1_MiB, 16, 0, 5)}).has_value());
  const auto chosen = choose_shape({rate(256_KiB, 4, 9, 0), rate(1_MiB, 16, 1, 1)});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->shape.block, 1_MiB);
}

TEST(choose_shape, holds_what_it_promises_on_random_tables_in_whatever_order) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> speed(0.9, 1.0);
  const auto best = [](const std::vector<shape_rate>& tried, byte_count least, byte_count most, unsigned depth) {
    double rate = 0;
    for (const shape_rate& s : tried) {
      const bool counts = s.shape.block >= least && s.shape.block <= most && s.shape.depth <= depth;
      rate = counts ? std::max(rate, s.both()) : rate;
    }
    return rate;
  };
  for (int round = 0; round < 2'000; ++round) {
    std::vector<shape_rate> tried;
    for (const transfer_shape& shape : shapes_to_try(0, 0)) {
      tried.push_back({shape, random() % 5 != 0 ? speed(random) : 0, speed(random)});
    }
    std::shuffle(tried.begin(), tried.end(), random);
    // By trying all pairs: the largest block, then the least depth, that keep the promise.
    std::optional<transfer_shape> wanted;
    const double top = best(tried, 0, 4_MiB, 64);
    for (const byte_count block : {4_MiB, 1_MiB, 256_KiB}) {
      for (const unsigned depth : {4U, 16U, 64U}) {
        bool fits = top > 0 && best(tried, block, block, 64) >= 0.97 * top;
        for (const byte_count smaller : {256_KiB, 1_MiB, 4_MiB}) {
          fits = fits &&
                 (smaller > block || best(tried, smaller, smaller, depth) >= 0.97 * best(tried, smaller, smaller, 64));
        }
        wanted = fits && !wanted ? transfer_shape{block, depth} : wanted;
      }
    }
    const auto chosen = choose_shape(tried);
    ASSERT_EQ(chosen.has_value(), wanted.has_value());
    if (chosen) {
      ASSERT_EQ(chosen->shape.block, wanted->block);
      ASSERT_EQ(chosen->shape.depth, wanted->depth);
    }
  }
}

}  // namespace
}  // namespace forebay::store_detail
