#include <forebay/checkpoint/digest.hpp>

#include <iomanip>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <xxhash.h>

#include <forebay/base/error.hpp>

#include "support.hpp"

namespace forebay {
namespace {

using test::eight_bytes;
using test::random_bytes;

/// The digest from its description: the whole message in one string, hashed at once.
std::string reference(const std::string& message) {
  const XXH128_hash_t hash = XXH3_128bits(message.data(), message.size());
  std::ostringstream hex;
  hex << std::hex << std::setfill('0') << std::setw(16) << hash.high64 << std::setw(16) << hash.low64;
  return hex.str();
}

std::string message_of(const std::string& name, const std::string& type, const std::vector<std::uint64_t>& shape,
                       const std::vector<std::byte>& contents) {
  std::string message = eight_bytes(name.size()) + name + eight_bytes(type.size()) + type + eight_bytes(shape.size());
  for (const std::uint64_t extent : shape) {
    message += eight_bytes(extent);
  }
  return message + eight_bytes(contents.size()) + test::text_of(contents);
}

std::string digest_of(const std::string& name, dtype type, const std::vector<std::uint64_t>& shape,
                      const std::vector<std::byte>& contents) {
  return digest(std::vector{memory_source(name, type, shape, contents)});
}

TEST(Digest, OfNothingIsThePublishedValue) {
  EXPECT_EQ(digest(std::vector<tensor_source>{}), "99aa06d3014798d86001c324468d497f");
}

TEST(Digest, IsTheHashOfTheDescribedBytes) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{240}, std::size_t{4097},
                                  std::size_t{1} << 20U, (std::size_t{1} << 20U) + 1, std::size_t{3333333}}) {
    const auto contents = random_bytes(bytes, 1);
    EXPECT_EQ(digest_of("h.0.w é", dtype::u8, {bytes, 1}, contents),
              reference(message_of("h.0.w é", "U8", {bytes, 1}, contents)));
  }
}

TEST(Digest, OfSeveralTensorsContinues) {
  const auto a = random_bytes(12, 1);
  const auto b = random_bytes(2000000, 2);
  const std::string expected = reference(message_of("a", "F32", {3}, a) + message_of("b", "BF16", {1000, 1000}, b) +
                                         message_of("", "F32", {3}, a));
  const std::vector tensors{memory_source("a", dtype::f32, {3}, a), memory_source("b", dtype::bf16, {1000, 1000}, b),
                            memory_source("", dtype::f32, {3}, a)};
  EXPECT_EQ(digest(tensors), expected);
  tensor_digest by_hand;
  for (const tensor_source& t : tensors) {
    by_hand.add(t);
  }
  EXPECT_EQ(by_hand.hex(), expected);
}

TEST(Digest, DiffersWhenAnythingDiffers) {
  const auto contents = random_bytes(24, 3);
  std::set<std::string> digests;
  std::size_t count = 0;
  const auto add = [&](const std::string& hex) {
    digests.insert(hex);
    ++count;
  };
  add(digest_of("ab", dtype::f32, {6}, contents));
  add(digest_of("ac", dtype::f32, {6}, contents));
  add(digest_of("a", dtype::f32, {6}, contents));
  add(digest_of("ab", dtype::i32, {6}, contents));
  add(digest_of("ab", dtype::f64, {3}, contents));
  add(digest_of("ab", dtype::f32, {2, 3}, contents));
  add(digest_of("ab", dtype::f32, {3, 2}, contents));
  add(digest_of("ab", dtype::f32, {6, 1}, contents));
  for (std::size_t bit = 0; bit < 24 * 8; ++bit) {
    auto flipped = contents;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    add(digest_of("ab", dtype::f32, {6}, flipped));
  }
  const auto x = memory_source("x", dtype::f32, {6}, contents);
  const auto y = memory_source("y", dtype::f32, {6}, contents);
  add(digest(std::vector{x, y}));
  add(digest(std::vector{y, x}));
  add(digest(std::vector{x}));
  EXPECT_EQ(digests.size(), count);
}

TEST(Digest, DoesNotDependOnWhereTheContentsComeFrom) {
  const auto contents = random_bytes(2100000, 4);
  const tensor_source computed{"t", dtype::u8, {2100000}, [&](byte_count offset, std::span<std::byte> out) {
                                 EXPECT_LE(out.size(), 1_MiB);
                                 for (std::size_t i = 0; i < out.size(); ++i) {
                                   out[i] = contents[offset + i];
                                 }
                               }};
  EXPECT_EQ(digest(std::vector{computed}), digest_of("t", dtype::u8, {2100000}, contents));
}

TEST(Digest, LetsTheSourcesErrorThrough) {
  const tensor_source failing{
      "t", dtype::u8, {1}, [](byte_count, std::span<std::byte>) { throw corruption_error("x"); }};
  EXPECT_THROW((void)digest(std::vector{failing}), corruption_error);
}

}  // namespace
}  // namespace forebay
