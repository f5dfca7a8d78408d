#include <forebay/base/id.hpp>

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace forebay {
namespace {

static_assert(!std::is_same_v<tensor_id, block_id>);
static_assert(!std::is_convertible_v<tensor_id, block_id>);
static_assert(!std::is_convertible_v<int, tensor_id>);
static_assert(std::is_trivially_copyable_v<tensor_id> && sizeof(tensor_id) == 8);

TEST(Id, ADefaultOneIsInvalid) {
  EXPECT_FALSE(tensor_id{}.valid());
  EXPECT_TRUE((tensor_id{0, 0}.valid()));
  EXPECT_EQ(tensor_id{}, tensor_id{});
}

TEST(Id, TheGenerationTellsAReusedSlotApart) {
  const tensor_id first{3, 1};
  const tensor_id reused{3, 2};
  EXPECT_NE(first, reused);
  EXPECT_EQ(first, (tensor_id{3, 1}));
  EXPECT_LT((tensor_id{2, 9}), first);  // by index first
  EXPECT_LT(first, reused);
}

TEST(Id, HashesBothParts) {
  std::unordered_set<std::size_t> hashes;
  std::unordered_set<tensor_id> ids;
  for (std::uint32_t index = 0; index < 50; ++index) {
    for (std::uint32_t generation = 0; generation < 50; ++generation) {
      const tensor_id id{index, generation};
      hashes.insert(std::hash<tensor_id>{}(id));
      ids.insert(id);
    }
  }
  EXPECT_EQ(ids.size(), 2500U);
  EXPECT_EQ(hashes.size(), 2500U);  // 64 bits in, 64 bits out: no collision
}

}  // namespace
}  // namespace forebay
