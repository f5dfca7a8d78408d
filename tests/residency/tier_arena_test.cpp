#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include <forebay/residency/tier_arena.hpp>

namespace forebay {
namespace {

constexpr byte_count unit = 4_KiB;

occupant block(std::uint32_t index) { return {occupant::kind::block, index, 0}; }

class tier_arena_test : public ::testing::Test {
 protected:
  ~tier_arena_test() override {
    std::vector<extent> left;
    for (const auto& [offset, who] : arena.occupants()) {
      left.push_back({offset, who.bytes});
    }
    for (const extent& place : left) {
      arena.free(place);
    }
    EXPECT_EQ(account.used(), 0U);
  }

  ledger account{"host", 16 * unit};
  tier_arena arena{account, 16 * unit, unit};
};

TEST_F(tier_arena_test, counts_every_byte_in_the_ledger) {
  const auto a = arena.allocate(3 * unit - 5, block(0));
  ASSERT_TRUE(a);
  EXPECT_EQ(account.used(), 3 * unit);
  EXPECT_TRUE(arena.allocate_at({4 * unit, unit}, block(1)));
  EXPECT_FALSE(arena.allocate_at({4 * unit, unit}, block(2)));
  EXPECT_EQ(account.used(), 4 * unit);
  arena.free(*a);
  EXPECT_EQ(account.used(), unit);
  EXPECT_FALSE(arena.allocate(12 * unit, block(3)));  // 15 are free, but not in one hole
}

TEST_F(tier_arena_test, a_claim_takes_holes_at_once_and_victims_as_they_leave) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(arena.allocate_at({i * 4 * unit, 3 * unit}, block(i)));  // a hole of one unit behind each
  }
  const auto found = arena.find_window(7 * unit, [](byte_count, const occupant& who) {
    return who.index == 0 ? std::optional<std::uint64_t>() : std::optional<std::uint64_t>(10 - who.index);
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->region, (extent{3 * unit, 8 * unit}));  // hole, 1, hole, 2: the best of the worst victims
  arena.claim_holes(found->region, 9);
  EXPECT_EQ(arena.claimed_bytes(found->region, 9), 2 * unit);
  EXPECT_FALSE(arena.allocate(2 * unit, block(5)));
  for (const std::uint32_t i : {1U, 2U}) {
    arena.rename({i * 4 * unit, 3 * unit}, {occupant::kind::claim, 9, 0});
  }
  EXPECT_EQ(account.used(), 12 * unit + 2 * unit);
  const extent place = arena.settle_claim(found->region, 7 * unit, block(9));
  EXPECT_EQ(place, (extent{3 * unit, 7 * unit}));
  EXPECT_EQ(account.used(), 2 * 3 * unit + 7 * unit);  // blocks 0 and 3, and the new one
}

TEST_F(tier_arena_test, a_dropped_claim_gives_back_what_it_had) {
  ASSERT_TRUE(arena.allocate_at({4 * unit, 4 * unit}, block(0)));
  arena.claim_holes({0, 16 * unit}, 1);
  EXPECT_EQ(arena.free_bytes(), 0U);
  arena.drop_claim({0, 16 * unit}, 1);
  EXPECT_EQ(arena.free_bytes(), 12 * unit);
}

// The best window over all runs of neighbours, found by trying every one of them.
TEST(tier_arena_search, agrees_with_brute_force) {
  std::mt19937 rng(7);
  for (int round = 0; round < 300; ++round) {
    constexpr std::uint32_t slots = 24;
    ledger account("device", slots * unit);
    tier_arena arena(account, slots * unit, unit);
    std::vector<std::optional<std::uint64_t>> score(slots);  // of the block that starts there
    std::vector<std::uint32_t> owner(slots, slots);
    for (std::uint32_t at = 0; at < slots;) {
      const std::uint32_t n = std::min(1 + static_cast<std::uint32_t>(rng() % 4), slots - at);
      if (rng() % 3 != 0) {
        ASSERT_TRUE(arena.allocate_at({at * unit, n * unit}, block(at)));
        std::fill_n(owner.begin() + at, n, at);
        if (rng() % 4 != 0) {
          score[at] = rng() % 6;
        }
      }
      at += n;
    }
    const std::uint32_t need = 1 + static_cast<std::uint32_t>(rng() % 12);
    std::optional<std::uint64_t> best;  // of the worst victims
    for (std::uint32_t first = 0; first + need <= slots; ++first) {
      std::uint64_t worst = ~std::uint64_t{0};
      bool possible = true;
      for (std::uint32_t at = first; at < first + need; ++at) {
        if (owner[at] != slots) {
          possible = possible && score[owner[at]].has_value();
          worst = std::min(worst, score[owner[at]].value_or(0));
        }
      }
      if (possible) {
        best = std::max(best.value_or(0), worst);
      }
    }
    const auto found =
        arena.find_window(need * unit, [&](byte_count, const occupant& who) { return score[who.index]; });
    ASSERT_EQ(found.has_value(), best.has_value()) << "round " << round;
    if (found) {
      std::uint64_t worst = ~std::uint64_t{0};
      for (const byte_count victim : found->victims) {
        worst = std::min(worst, *score[victim / unit]);
      }
      EXPECT_EQ(worst, *best) << "round " << round;
      EXPECT_GE(found->region.bytes, need * unit);
    }
    std::vector<extent> left;
    for (const auto& [offset, who] : arena.occupants()) {
      left.push_back({offset, who.bytes});
    }
    for (const extent& place : left) {
      arena.free(place);
    }
  }
}

}  // namespace
}  // namespace forebay
