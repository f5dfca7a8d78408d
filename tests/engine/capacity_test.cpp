#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_engine.hpp"

namespace forebay {
namespace {

using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

// Two device steps and one host step whose needs can be added up by hand. Blocks are multiples of 4 KiB.
struct three_steps {
  explicit three_steps(engine& e) {
    a = add_floats(e, "a", 3 * 1024);      // 12 KiB
    b = add_floats(e, "b", 5 * 1024 + 1);  // 20 KiB and 4 B: 24 KiB
    c = add_floats(e, "c", 1);             // 4 KiB
    steps.step("light", {writes(a)});
    steps.step("heavy", {reads(a), writes(b)}, {.workspace = 5'000});                    // 12 + 24 + 8 KiB
    steps.step("tally", {reads(b), writes(c)}, {.where = place::host, .workspace = 1});  // 24 + 4 + 4 KiB
  }

  void write_all(engine& e) {
    e.write<float>(a, ramp(3 * 1024, 1.0F));
    e.write<float>(b, ramp(5 * 1024 + 1, 2.0F));
    e.write<float>(c, ramp(1, 3.0F));
  }

  // Each step adds one to the first element of what it writes.
  void run(engine& e, std::uint64_t n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const tensor_id written = std::array{a, b, c}[i];
      if (i == 2) {
        const lease l = it.acquire(step_id{i, 0});
        l.data<float>(written)[0] += 1.0F;
      } else {
        const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
        e.compute_stream().launch([data = l.data<float>(written)] { data[0] += 1.0F; });
      }
    }
    it.finish();
  }

  tensor_id a, b, c;
  order steps;
};

constexpr byte_count device_need = 44_KiB;
constexpr byte_count host_need = 32_KiB + 64_KiB;  // the working set and one chunk
constexpr byte_count storage_need = 40_KiB;

TEST(minimum_capacity, is_the_largest_working_set_of_each_tier) {
  const scratch_directory directory;
  engine e(small_options(1_MiB, 1_MiB, &directory));
  const three_steps steps(e);
  const tier_bytes least = e.minimum_capacity(steps.steps);
  EXPECT_EQ(least.device, device_need);
  EXPECT_EQ(least.host, host_need);
  EXPECT_EQ(least.storage, storage_need);
}

TEST(minimum_capacity, without_storage_is_room_for_everything_in_the_host_tier) {
  engine e(small_options(1_MiB, 1_MiB));
  const three_steps steps(e);
  const tier_bytes least = e.minimum_capacity(steps.steps);
  EXPECT_EQ(least.device, device_need);
  EXPECT_EQ(least.host, storage_need + 4_KiB);  // and the host step's workspace
  EXPECT_EQ(least.storage, 0U);
}

TEST(minimum_capacity, is_enough) {
  const scratch_directory directory;
  for (const bool stored : {true, false}) {
    engine e(small_options(device_need, stored ? host_need : storage_need + 4_KiB, stored ? &directory : nullptr));
    three_steps steps(e);
    e.set_order(steps.steps);
    steps.write_all(e);
    for (std::uint64_t n = 0; n < 5; ++n) {
      steps.run(e, n);
    }
    EXPECT_EQ(contents(e, steps.a)[0], 6.0F);
    EXPECT_EQ(contents(e, steps.b)[0], 7.0F);
    EXPECT_EQ(contents(e, steps.c)[0], 8.0F);
    EXPECT_LE(e.peak().device, device_need);
    EXPECT_LE(e.peak().host, e.capacity().host);
  }
}

std::string refusal_of(engine& e, const order& steps) {
  try {
    e.set_order(steps);
  } catch (const capacity_error& failure) {
    return failure.what();
  }
  return "";
}

TEST(minimum_capacity, one_byte_less_of_device_memory_is_refused_with_the_step_its_need_and_the_capacity) {
  const scratch_directory directory;
  engine e(small_options(device_need - 1, 1_MiB, &directory));
  const three_steps steps(e);
  EXPECT_THAT(refusal_of(e, steps.steps),
              ::testing::AllOf(::testing::HasSubstr("'heavy'"), ::testing::HasSubstr("45056"),
                               ::testing::HasSubstr("45055"), ::testing::HasSubstr("device tier")));
}

TEST(minimum_capacity, one_byte_less_of_host_memory_is_refused_with_the_step_its_need_and_the_capacity) {
  const scratch_directory directory;
  engine e(small_options(1_MiB, host_need - 4_KiB, &directory));
  const three_steps steps(e);
  EXPECT_THAT(refusal_of(e, steps.steps),
              ::testing::AllOf(::testing::HasSubstr("'tally'"), ::testing::HasSubstr("98304"),
                               ::testing::HasSubstr("94208"), ::testing::HasSubstr("host tier")));
}

TEST(minimum_capacity, a_refused_order_changes_nothing) {
  const scratch_directory directory;
  engine e(small_options(12_KiB, 1_MiB, &directory));
  const three_steps steps(e);
  EXPECT_THROW(e.set_order(steps.steps), capacity_error);
  order small;
  small.step("light", {writes(steps.a)});
  e.set_order(small);
  e.zero(steps.a);
  iteration it = e.begin(0);
  { const lease l = it.acquire(step_id{0, 0}, e.compute_stream()); }
  it.finish();
}

TEST(capacity, a_host_tier_below_one_chunk_is_refused) {
  const scratch_directory directory;
  EXPECT_THROW(engine(small_options(1_MiB, 60_KiB, &directory)), capacity_error);
}

TEST(capacity, storage_that_is_too_small_is_refused_before_training) {
  const scratch_directory directory;
  engine_options o = small_options(1_MiB, 1_MiB, &directory);
  o.storage[0].capacity = storage_need - 4_KiB;
  engine e(std::move(o));
  const three_steps steps(e);
  EXPECT_THROW(e.set_order(steps.steps), capacity_error);
}

TEST(capacity, storage_of_exactly_the_need_is_enough) {
  const scratch_directory directory;
  engine_options o = small_options(device_need, host_need, &directory);
  o.storage[0].capacity = storage_need;
  engine e(std::move(o));
  three_steps steps(e);
  e.set_order(steps.steps);
  steps.write_all(e);
  steps.run(e, 0);
  EXPECT_EQ(contents(e, steps.b)[0], 3.0F);
}

// A pool with 2 % over the sum of its tensors holds them: nothing is rounded up to a power of two.
TEST(capacity, many_odd_tensors_fit_in_their_sum_and_two_per_cent) {
  constexpr std::uint64_t elements = 270'009;  // 1.03 MiB each
  constexpr byte_count sum = 100 * elements * sizeof(float);
  engine e(small_options(4_MiB, sum + sum / 50));
  order steps;
  for (int i = 0; i < 100; ++i) {
    steps.step("s" + std::to_string(i), {writes(add_floats(e, "t" + std::to_string(i), elements))});
  }
  e.set_order(steps);
  for (const tensor_id t : e.tensors()) {
    e.zero(t);
  }
  iteration it = e.begin(0);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
    e.compute_stream().launch(
        [data = l.data<float>(e.tensors()[i]), i] { data[elements - 1] = static_cast<float>(i); });
  }
  it.finish();
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(contents(e, e.tensors()[i])[elements - 1], static_cast<float>(i));
  }
  EXPECT_EQ(e.report().pinned_bytes, e.capacity().host);  // what is pinned is the tier, no more
}

}  // namespace
}  // namespace forebay
