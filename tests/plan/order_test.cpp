#include <random>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/minimum_capacity.hpp>
#include <forebay/plan/next_use.hpp>
#include <forebay/plan/order.hpp>
#include <forebay/plan/packing.hpp>

namespace forebay {
namespace {

tensor_id tensor(std::uint32_t index) { return {index, 1}; }

TEST(order, unites_the_uses_of_a_tensor_in_a_step) {
  order o;
  const step_id s = o.step("s", {reads(tensor(0)), writes(tensor(1)), frees(tensor(0))});
  ASSERT_EQ(o.at(s).accesses.size(), 2U);
  EXPECT_EQ(o.at(s).accesses[0].how, uses::read | uses::free);
}

TEST(order, refuses_invalid_tensors_and_contents_that_are_created_and_read_at_once) {
  order o;
  EXPECT_THROW(o.step("s", {reads(tensor_id{})}), usage_error);
  EXPECT_THROW(o.step("s", {creates(tensor(0)), reads(tensor(0))}), usage_error);
  EXPECT_TRUE(o.steps().empty());
}

TEST(order, hashes_what_the_steps_do_and_not_their_names) {
  const auto hash_of = [](const char* name, std::vector<access> accesses, byte_count workspace) {
    order o;
    step_options options;
    options.workspace = workspace;
    o.step(name, std::move(accesses), options);
    return o.hash();
  };
  const std::uint64_t base = hash_of("a", {reads(tensor(0))}, 0);
  EXPECT_EQ(base, hash_of("b", {reads(tensor(0))}, 0));
  EXPECT_NE(base, hash_of("a", {writes(tensor(0))}, 0));
  EXPECT_NE(base, hash_of("a", {reads(tensor(1))}, 0));
  EXPECT_NE(base, hash_of("a", {reads(tensor(0))}, 1));
}

TEST(packing, shares_blocks_only_among_tensors_that_are_used_alike) {
  order o;
  o.step("a", {reads(tensor(0)), reads(tensor(1)), reads(tensor(2)), reads(tensor(4))});
  o.step("b", {writes(tensor(0)), writes(tensor(1)), reads(tensor(2)), writes(tensor(4))});
  const std::vector<plan::packable_tensor> tensors{
      {tensor(0), 1000, 0}, {tensor(1), 300, 0}, {tensor(2), 300, 0}, {tensor(3), 4097, 0}, {tensor(4), 10, 1}};
  const std::vector<plan::packed_block> blocks = plan::pack(tensors, o, 4096);
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_EQ(blocks[0].tensors, (std::vector{tensor(0), tensor(1)}));
  EXPECT_EQ(blocks[0].offsets, (std::vector<byte_count>{0, 1024}));  // the next multiple of 256
  EXPECT_EQ(blocks[0].bytes, 4096U);
  EXPECT_EQ(blocks[2].tensors, std::vector{tensor(3)});  // larger than a shared block may be: its own
  EXPECT_EQ(blocks[2].bytes, 8192U);
  EXPECT_EQ(blocks[3].tensors, std::vector{tensor(4)});  // used alike, but of another group
}

plan::trace random_trace(std::mt19937& rng) {
  plan::trace t;
  t.item_bytes.assign(1 + rng() % 8, 4_KiB);
  t.steps.resize(1 + rng() % 12);
  for (plan::trace_step& s : t.steps) {
    for (plan::item_index i = 0; i < t.item_bytes.size(); ++i) {
      if (rng() % 3 == 0) {
        s.accesses.push_back({i, uses::read});
      }
    }
  }
  return t;
}

TEST(next_use, agrees_with_walking_along_the_order) {
  std::mt19937 rng(3);
  for (int round = 0; round < 200; ++round) {
    const plan::trace t = random_trace(rng);
    const plan::next_use next(t);
    const auto steps = static_cast<std::uint32_t>(t.steps.size());
    const auto walk = [&](plan::item_index item, std::uint32_t position, std::uint32_t from) {
      for (std::uint32_t d = from; d < from + steps; ++d) {
        for (const plan::item_access& a : t.steps[(position + d) % steps].accesses) {
          if (a.item == item) {
            return d;
          }
        }
      }
      return plan::next_use::never;
    };
    for (plan::item_index i = 0; i < t.item_bytes.size(); ++i) {
      for (std::uint32_t p = 0; p < steps; ++p) {
        ASSERT_EQ(next.distance(i, p), walk(i, p, 0));
        ASSERT_EQ(next.distance_after(i, p, p % 3), walk(i, p, p % 3 + 1));
      }
    }
  }
}

TEST(minimum_capacity, is_the_largest_step_of_each_place) {
  plan::trace t;
  t.item_bytes = {8_KiB, 4_KiB, 16_KiB};
  t.steps.resize(3);
  t.steps[0].accesses = {{0, uses::read}, {1, uses::write}};
  t.steps[0].workspace = 1;
  t.steps[1].accesses = {{2, uses::read}};
  t.steps[2].where = place::host;
  t.steps[2].accesses = {{1, uses::read}};
  const plan::capacity_needs needs = plan::minimum_capacity(t, 64_KiB);
  EXPECT_EQ(needs.device.bytes, 16_KiB);
  EXPECT_EQ(needs.device.step, 0U);  // the first of the largest
  EXPECT_EQ(needs.host.bytes, 68_KiB);
  EXPECT_EQ(needs.host.step, 2U);
  EXPECT_EQ(needs.home, 28_KiB);
}

}  // namespace
}  // namespace forebay
