// engine.read, engine.write and engine.zero: contents outside of steps, wherever they live.
#include <gtest/gtest.h>

#include "small_engine.hpp"

namespace forebay {
namespace {

using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

TEST(contents, any_size_survives_storage_and_the_device) {
  const scratch_directory directory;
  constexpr std::array<std::uint64_t, 9> sizes{1, 2, 3, 511, 4095, 4096, 4097, 65'537, 300'001};
  engine e(small_options(1'204'224, 512_KiB, &directory));  // the host tier is smaller than the largest tensor
  order o;
  for (const std::uint64_t n : sizes) {
    const tensor_id t = e.add({"t" + std::to_string(n), dtype::u8, {4 * n}});
    o.step("s" + std::to_string(n), {writes(t)});
  }
  e.set_order(o);
  std::vector<std::vector<std::uint8_t>> expected;
  for (const tensor_id t : e.tensors()) {
    std::vector<std::uint8_t> values(e.spec(t).bytes());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint8_t>(i * 7 + t.index);
    }
    e.write<std::uint8_t>(t, values);
    expected.push_back(values);
  }
  for (std::uint64_t n = 0; n < 3; ++n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
      e.compute_stream().launch([data = l.data<std::uint8_t>(e.tensors()[i])] { ++data.back(); });
      ++expected[i].back();
    }
    it.finish();
  }
  for (const tensor_id t : e.tensors()) {
    std::vector<std::uint8_t> values(e.spec(t).bytes());
    e.read<std::uint8_t>(t, values);
    EXPECT_EQ(values, expected[t.index]);
  }
}

TEST(contents, parts_are_written_and_read_where_they_belong) {
  const scratch_directory directory;
  for (const byte_count host : {4_MiB, 128_KiB}) {  // in the host tier, and straight to storage
    engine e(small_options(1_MiB, host, &directory));
    const tensor_id t = add_floats(e, "t", 100'000);
    std::vector<float> expected(100'000, 0.0F);
    e.zero(t);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{16'383}, std::uint64_t{99'990}}) {
      const std::vector<float> part = ramp(10, static_cast<float>(first));
      std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(first));
      e.write(t, std::as_bytes(std::span(part)), first * sizeof(float));
    }
    EXPECT_EQ(contents(e, t), expected);
    std::vector<float> part(3);
    e.read(t, std::as_writable_bytes(std::span(part)), 16'384 * sizeof(float));
    EXPECT_EQ(part, ramp(3, 16'384.0F));
    EXPECT_THROW(e.read(t, std::as_writable_bytes(std::span(part)), 100'000 * sizeof(float) - 4), usage_error);
    EXPECT_THROW(e.write(t, std::as_bytes(std::span(part)), ~byte_count{0}), usage_error);
  }
}

TEST(contents, zeroed_tensors_are_zero_everywhere_and_cost_no_transfer) {
  const scratch_directory directory;
  engine e(small_options(64_KiB, 256_KiB, &directory));
  const tensor_id t = add_floats(e, "t", 16'384);
  EXPECT_THROW(static_cast<void>(contents(e, t)), usage_error);
  order o;
  o.step("s", {reads(t)});
  e.set_order(o);
  e.zero(t);
  EXPECT_EQ(contents(e, t), std::vector<float>(16'384));
  iteration it = e.begin(0);
  float largest = 1.0F;
  {
    const lease l = it.acquire(step_id{0, 0}, e.compute_stream());
    e.compute_stream().launch(
        [data = l.data<float>(t), &largest] { largest = *std::max_element(data.begin(), data.end()); });
  }
  const iteration_report r = it.finish();
  EXPECT_EQ(largest, 0.0F);
  EXPECT_EQ(r.moved.storage_read + r.moved.storage_written, 0U);
  e.write<float>(t, ramp(16'384, 1.0F));
  e.zero(t);
  EXPECT_EQ(contents(e, t), std::vector<float>(16'384));
}

// Weights that no step writes go to storage once and are only dropped afterwards.
TEST(contents, frozen_tensors_are_never_written_back_twice) {
  const scratch_directory directory;
  engine e(small_options(64_KiB, 192_KiB, &directory));
  order o;
  for (int i = 0; i < 8; ++i) {
    o.step("s" + std::to_string(i), {reads(add_floats(e, "t" + std::to_string(i), 16'384))});
  }
  e.set_order(o);
  for (const tensor_id t : e.tensors()) {
    e.write<float>(t, ramp(16'384, static_cast<float>(t.index)));
  }
  link_bytes moved;
  for (std::uint64_t n = 0; n < 5; ++n) {
    iteration it = e.begin(n);
    for (std::uint32_t i = 0; i < 8; ++i) {
      const lease l = it.acquire(step_id{i, 0}, e.compute_stream());
    }
    const link_bytes m = it.finish().moved;
    moved.storage_written += m.storage_written;
    moved.d2h += m.d2h;
    moved.storage_read += m.storage_read;
  }
  EXPECT_LE(moved.storage_written, 8 * 64_KiB);
  EXPECT_EQ(moved.d2h, 0U);
  EXPECT_GT(moved.storage_read, 0U);
}

}  // namespace
}  // namespace forebay
