#include <forebay/memory/extent_allocator.hpp>

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

/// One flag per granule, and every rule applied by looking at all of them.
class bitmap_model {
 public:
  bitmap_model(byte_count capacity, byte_count granularity)
      : granularity_(granularity), used_(capacity / granularity) {}

  [[nodiscard]] std::optional<extent> allocate(byte_count bytes) {
    const std::size_t wanted = granules(bytes);
    std::optional<extent> best;
    for (const extent& hole : holes()) {  // in address order: the first of the smallest
      if (hole.bytes >= wanted * granularity_ && (!best || hole.bytes < best->bytes)) {
        best = hole;
      }
    }
    if (best) {
      best->bytes = wanted * granularity_;
      set(*best, true);
    }
    return best;
  }

  [[nodiscard]] bool all(extent place, bool value) const {
    for (std::size_t i = place.offset / granularity_; i < place.offset / granularity_ + granules(place.bytes); ++i) {
      if (i >= used_.size() || used_[i] != value) {
        return false;
      }
    }
    return true;
  }

  void set(extent place, bool value) {
    for (std::size_t i = place.offset / granularity_; i < place.offset / granularity_ + granules(place.bytes); ++i) {
      used_[i] = value;
    }
  }

  [[nodiscard]] std::vector<extent> holes() const {
    std::vector<extent> result;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) {
        continue;
      }
      if (i > 0 && !used_[i - 1]) {
        result.back().bytes += granularity_;
      } else {
        result.push_back({i * granularity_, granularity_});
      }
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t granules(byte_count bytes) const { return (bytes + granularity_ - 1) / granularity_; }

  byte_count granularity_;
  std::vector<bool> used_;
};

void expect_same(const extent_allocator& a, const bitmap_model& m) {
  std::vector<extent> holes;
  byte_count free = 0;
  byte_count largest = 0;
  for (const auto& [offset, bytes] : a.holes()) {
    holes.push_back({offset, bytes});
  }
  const std::vector<extent> expected = m.holes();
  for (const extent& hole : expected) {
    free += hole.bytes;
    largest = std::max(largest, hole.bytes);
  }
  ASSERT_EQ(holes, expected);
  ASSERT_EQ(a.hole_count(), expected.size());
  ASSERT_EQ(a.free_bytes(), free);
  ASSERT_EQ(a.largest_hole(), largest);
}

struct shape {
  byte_count capacity;
  byte_count granularity;
  byte_count largest;
};

class extent_allocator_sweep : public ::testing::TestWithParam<shape> {};

// Every operation, right and wrong ones, against the bitmap: the same answers and the same holes after each.
TEST_P(extent_allocator_sweep, equals_a_bitmap_after_every_operation) {
  const shape s = GetParam();
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    extent_allocator a(s.capacity, s.granularity);
    bitmap_model m(s.capacity, s.granularity);
    std::vector<extent> live;
    for (int i = 0; i < 400; ++i) {
      const byte_count bytes = 1 + random() % s.largest;
      const extent place{random() % (s.capacity / s.granularity + 2) * s.granularity, bytes};
      switch (random() % 6) {
        case 0:
        case 1: {
          const auto got = a.allocate(bytes);
          ASSERT_EQ(got, m.allocate(bytes)) << "seed " << seed << " operation " << i;
          if (got) {
            live.push_back(*got);
          }
          break;
        }
        case 2: {
          const bool free = m.all(place, false);
          ASSERT_EQ(a.allocate_at(place), free);
          if (free) {
            m.set(place, true);
            live.push_back(place);
          }
          break;
        }
        case 3: {  // any range at all: must be refused unless it is wholly allocated
          const bool allocated = m.all(place, true);
          if (!allocated) {
            ASSERT_THROW(a.free(place), usage_error);
          }
          break;
        }
        default: {
          if (live.empty()) {
            break;
          }
          const std::size_t chosen = random() % live.size();
          a.free(live[chosen]);
          m.set(live[chosen], false);
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
        }
      }
      expect_same(a, m);
      if (HasFatalFailure()) {
        FAIL() << "seed " << seed << " operation " << i;
      }
    }
    for (const extent& e : live) {
      a.free(e);
    }
    ASSERT_EQ(a.hole_count(), a.capacity() > 0 ? 1U : 0U);
    ASSERT_EQ(a.largest_hole(), a.capacity());
  }
}

INSTANTIATE_TEST_SUITE_P(shapes, extent_allocator_sweep,
                         ::testing::Values(shape{64, 1, 9}, shape{4096, 64, 500}, shape{1000, 64, 300},
                                           shape{1_MiB, 4_KiB, 64_KiB}, shape{7, 8, 9}));

TEST(extent_allocator, takes_the_smallest_hole_that_fits_and_the_lowest_of_equals) {
  extent_allocator a(100, 1);
  ASSERT_TRUE(a.allocate(100));
  a.free({0, 10});
  a.free({20, 5});
  a.free({40, 5});
  EXPECT_EQ(a.allocate(5), (extent{20, 5}));
  EXPECT_EQ(a.allocate(4), (extent{40, 4}));
  EXPECT_EQ(a.allocate(2), (extent{0, 2}));
  EXPECT_EQ(a.allocate(9), std::nullopt);
  EXPECT_EQ(a.allocate(8), (extent{2, 8}));
}

TEST(extent_allocator, a_part_of_an_extent_may_be_given_back) {
  extent_allocator a(64, 8);
  ASSERT_EQ(a.allocate(64), (extent{0, 64}));
  a.free({16, 9});  // rounds to 16
  EXPECT_EQ(a.holes(), (std::map<byte_count, byte_count>{{16, 16}}));
  EXPECT_THROW(a.free({8, 16}), usage_error);
  EXPECT_THROW(a.free({24, 16}), usage_error);
  EXPECT_EQ(a.free_bytes(), 16U);
}

TEST(extent_allocator, sizes_near_the_end_of_64_bits_do_not_wrap) {
  const byte_count max = ~byte_count{0};
  extent_allocator a(max, 4_KiB);
  EXPECT_EQ(a.capacity(), max - 4095);
  EXPECT_EQ(a.allocate(max), std::nullopt);
  EXPECT_FALSE(a.allocate_at({max - 4095, 4_KiB}));
  EXPECT_FALSE(a.allocate_at({4_KiB, max - 10}));
  EXPECT_TRUE(a.allocate_at({max - 8191, 4_KiB}));
  EXPECT_THROW(a.free({4_KiB, max - 10}), usage_error);
  EXPECT_EQ(a.free_bytes(), max - 8191);
  extent_allocator small(100, 64);
  EXPECT_EQ(small.capacity(), 64U);
  EXPECT_EQ(small.allocate(65), std::nullopt);
}

TEST(extent_allocator, refuses_what_has_no_meaning) {
  EXPECT_THROW(extent_allocator(64, 3), usage_error);
  EXPECT_THROW(extent_allocator(64, 0), usage_error);
  extent_allocator a(64, 8);
  EXPECT_THROW(static_cast<void>(a.allocate(0)), usage_error);
  EXPECT_THROW(static_cast<void>(a.allocate_at({0, 0})), usage_error);
  EXPECT_THROW(static_cast<void>(a.allocate_at({4, 8})), usage_error);
  EXPECT_THROW(a.free({0, 0}), usage_error);
  EXPECT_THROW(a.free({4, 4}), usage_error);
  EXPECT_THROW(a.free({0, 8}), usage_error);
}

}  // namespace
}  // namespace forebay
