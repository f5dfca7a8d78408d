#include <forebay/plan/split.hpp>

#include <limits>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

#include "random_trace.hpp"

namespace forebay::plan {
namespace {

using sizes = std::vector<byte_count>;
using indices = std::vector<item_index>;

trace of_sizes(sizes item_bytes) { return {std::move(item_bytes), {}}; }

TEST(split_items, makes_the_fewest_parts_as_equal_as_can_be) {
  const split_trace s = split_items(of_sizes({10, 3, 4, 9}), 4);
  EXPECT_EQ(s.parts.item_bytes, (sizes{4, 3, 3, 3, 4, 3, 3, 3}));  // 10 in ceil(10 / 4) = 3; 9 in 3
  EXPECT_EQ(s.item_of, (indices{0, 0, 0, 1, 2, 3, 3, 3}));
  EXPECT_EQ(s.first_part, (indices{0, 3, 4, 5, 8}));
}

TEST(split_items, keeps_whole_blocks_whole) {
  // 5 blocks in parts of at most 2.5 blocks: 2 whole blocks a part, so three parts
  EXPECT_EQ(split_items(of_sizes({20_KiB}), 10_KiB).parts.item_bytes, (sizes{8_KiB, 8_KiB, 4_KiB}));
  // no part is below a block, whatever is asked for
  EXPECT_EQ(split_items(of_sizes({8_KiB}), 1).parts.item_bytes, (sizes{4_KiB, 4_KiB}));
  // one byte more, and it is not of whole blocks
  EXPECT_EQ(split_items(of_sizes({8_KiB + 1}), 8_KiB).parts.item_bytes, (sizes{4097, 4096}));
}

TEST(split_items, leaves_small_and_empty_items_alone) {
  const split_trace s = split_items(of_sizes({0, 7, 4_KiB}), 4_KiB);
  EXPECT_EQ(s.parts.item_bytes, (sizes{0, 7, 4_KiB}));
  EXPECT_EQ(s.first_part, (indices{0, 1, 2, 3}));
  EXPECT_EQ(split_items(trace{}, 1).first_part, (indices{0}));
}

TEST(split_items, sizes_near_64_bits_do_not_wrap) {
  constexpr byte_count most = std::numeric_limits<byte_count>::max();  // odd: not of whole blocks
  EXPECT_EQ(split_items(of_sizes({most}), most).parts.item_bytes, (sizes{most}));
  EXPECT_EQ(split_items(of_sizes({most}), most - 1).parts.item_bytes, (sizes{most / 2 + 1, most / 2}));
  EXPECT_EQ(split_items_evenly(of_sizes({most}), 2).parts.item_bytes, (sizes{most / 2 + 1, most / 2}));
}

TEST(split_items, an_access_becomes_one_of_each_part_in_order) {
  trace t = of_sizes({2, 5});
  t.steps.push_back({place::host, 1.5, 77, "update", {{1, uses::read | uses::write}, {0, uses::create}}});
  const split_trace s = split_items(t, 2);
  ASSERT_EQ(s.parts.steps.size(), 1U);
  const trace_step& step = s.parts.steps[0];
  EXPECT_EQ(step.where, place::host);
  EXPECT_EQ(step.seconds, 1.5);
  EXPECT_EQ(step.workspace, 77U);
  EXPECT_EQ(step.phase, "update");
  indices items;
  for (const item_access& a : step.accesses) {
    items.push_back(a.item);
    EXPECT_EQ(a.how, a.item == 0 ? uses::create : uses::read | uses::write);
  }
  EXPECT_EQ(items, (indices{1, 2, 3, 0}));
}

TEST(split_items_evenly, makes_so_many_parts_or_as_many_as_there_are_units) {
  const split_trace s = split_items_evenly(of_sizes({11, 3, 12_KiB, 0}), 4);
  EXPECT_EQ(s.parts.item_bytes, (sizes{3, 3, 3, 2, 1, 1, 1, 4_KiB, 4_KiB, 4_KiB, 0}));
  EXPECT_EQ(s.first_part, (indices{0, 4, 7, 10, 11}));
  EXPECT_EQ(split_items_evenly(of_sizes({11, 3}), 1).parts.item_bytes, (sizes{11, 3}));
}

template <typename Split>
void expect_refused(Split&& split, const std::string& value, const std::string& limit) {
  try {
    static_cast<void>(split());
    FAIL() << "was taken";
  } catch (const usage_error& e) {
    EXPECT_NE(std::string(e.what()).find(value), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(limit), std::string::npos) << e.what();
  }
}

TEST(split_items, refuses_what_cannot_be_and_says_so) {
  expect_refused([] { return split_items({}, 0); }, "0 bytes", "1 is the least");
  expect_refused([] { return split_items_evenly({}, 0); }, "0 parts", "1 is the least");
  expect_refused([] { return split_items(of_sizes({1_TiB + 1}), 1); }, "1099511627777 parts", "16777216");
  expect_refused([] { return split_items(of_sizes({9, 1_TiB + 1}), 3); }, "item 1", "16777216");
  trace t = of_sizes({1});
  t.steps.push_back({place::device, 1.0, 0, "", {{1, uses::read}}});
  expect_refused([&] { return split_items(t, 1); }, "item 1", "there are 1");
}

TEST(split_items, parts_add_up_to_their_items_and_to_their_steps) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    test::trace_shape shape;
    shape.largest = 40000;
    trace t = test::random_trace(random, shape);
    for (byte_count& bytes : t.item_bytes) {
      bytes = random() % 2 == 0 ? align_up(bytes, 4_KiB) : bytes;
    }
    const byte_count limit = 1 + random() % 20000;
    const split_trace s = split_items(t, limit);
    for (item_index i = 0; i < t.item_bytes.size(); ++i) {
      byte_count sum = 0;
      for (item_index part = s.first_part[i]; part < s.first_part[i + 1]; ++part) {
        ASSERT_EQ(s.item_of[part], i);
        const byte_count bytes = s.parts.item_bytes[part];
        if (t.item_bytes[i] % 4096 == 0) {
          ASSERT_EQ(bytes % 4096, 0U);
          ASSERT_LE(bytes, std::max<byte_count>(limit, 4096));
        } else {
          ASSERT_LE(bytes, limit);
        }
        sum += bytes;
      }
      ASSERT_EQ(sum, t.item_bytes[i]);
    }
    for (std::size_t k = 0; k < t.steps.size(); ++k) {
      std::size_t expected = 0;
      for (const item_access& a : t.steps[k].accesses) {
        expected += s.first_part[a.item + 1] - s.first_part[a.item];
      }
      ASSERT_EQ(s.parts.steps[k].accesses.size(), expected);
    }
  }
}

}  // namespace
}  // namespace forebay::plan
