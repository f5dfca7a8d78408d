// Who gets which part: shares against closed forms, dealing against its bound, weights from rates.
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/store/detail/path_shares.hpp>

namespace forebay::store_detail {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using bytes_list = std::vector<byte_count>;
using shares_list = std::vector<double>;

TEST(bounded_shares, follow_the_weights_where_there_is_room) {
  EXPECT_THAT(bounded_shares({3, 1}, {100, 100}, 100), ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
  EXPECT_THAT(bounded_shares({1, 1, 2}, {100, 100, 100}, 0),
              ElementsAre(DoubleEq(0.25), DoubleEq(0.25), DoubleEq(0.5)));
}

TEST(bounded_shares, what_a_small_path_cannot_take_goes_to_the_others_by_weight) {
  EXPECT_THAT(bounded_shares({3, 1}, {50, 100}, 100), ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
  // 0.3 is all that the first can take; 0.7 go 3 to 1.
  EXPECT_THAT(bounded_shares({6, 3, 1}, {30, 100, 100}, 100),
              ElementsAre(DoubleEq(0.3), DoubleNear(0.525, 1e-12), DoubleNear(0.175, 1e-12)));
  // Taking it makes the second one too small as well.
  EXPECT_THAT(bounded_shares({6, 3, 1}, {30, 40, 100}, 100),
              ElementsAre(DoubleEq(0.3), DoubleEq(0.4), DoubleNear(0.3, 1e-12)));
}

TEST(bounded_shares, more_than_there_is_room_for_fills_all_paths_evenly) {
  EXPECT_THAT(bounded_shares({1, 1}, {10, 30}, 100), ElementsAre(DoubleNear(0.25, 1e-12), DoubleNear(0.75, 1e-12)));
}

TEST(bounded_shares, no_weight_or_no_room_is_no_share) {
  EXPECT_THAT(bounded_shares({0, 1}, {100, 100}, 100), ElementsAre(0.0, DoubleEq(1.0)));
  EXPECT_THAT(bounded_shares({1, 1}, {0, 100}, 100), ElementsAre(0.0, DoubleEq(1.0)));
  EXPECT_THAT(bounded_shares({1, 1}, {0, 0}, 100), ElementsAre(0.0, 0.0));
  EXPECT_THAT(bounded_shares({0, 0}, {5, 5}, 100), ElementsAre(0.0, 0.0));
}

TEST(share_dealer, equal_shares_are_round_robin) {
  const share_dealer dealer(3, 64, 1);
  const shares_list third(3, 1.0 / 3);
  EXPECT_THAT(dealer.deal(bytes_list(7, 64), third), ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(share_dealer, two_paths_never_stray_by_a_whole_piece_over_any_run_of_pages) {
  share_dealer dealer(2, 1000, 1);
  const shares_list shares{0.75, 0.25};
  double first = 0;
  double dealt = 0;
  // Pages of 1 to 9 pieces, the last one smaller: prefixes of every length.
  for (unsigned page = 0; page < 200; ++page) {
    bytes_list pieces(1 + page % 9, 1000);
    pieces.back() = 1 + (page * 37) % 1000;
    bytes_list split(2, 0);
    const std::vector<std::uint32_t> paths = dealer.deal(pieces, shares);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      split[paths[i]] += pieces[i];
      dealt += static_cast<double>(pieces[i]);
      first += paths[i] == 0 ? static_cast<double>(pieces[i]) : 0;
      ASSERT_LT(std::abs(first - 0.75 * dealt), 1000.0);
    }
    dealer.note(split, shares);
  }
}

RC_GTEST_PROP(share_dealer, no_path_is_ever_more_than_a_piece_ahead, ()) {
  const auto paths = *rc::gen::inRange<std::size_t>(1, 7);
  std::vector<double> shares;
  for (const unsigned weight : *rc::gen::container<std::vector<unsigned>>(paths, rc::gen::inRange(1U, 100U))) {
    shares.push_back(weight);
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) {
    share /= all;
  }
  const auto pieces = *rc::gen::container<bytes_list>(rc::gen::inRange<byte_count>(1, 1001));
  const share_dealer dealer(paths, 1000, 1);
  const std::vector<std::uint32_t> dealt = dealer.deal(pieces, shares);
  RC_ASSERT(dealt.size() == pieces.size());
  std::vector<double> got(paths, 0);
  double sum = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    got.at(dealt[i]) += static_cast<double>(pieces[i]);
    sum += static_cast<double>(pieces[i]);
    for (std::size_t p = 0; p < paths; ++p) {
      RC_ASSERT(got[p] <= shares[p] * sum + 1001);
    }
  }
}

TEST(share_dealer, a_split_fits_until_it_is_off_by_a_chunk) {
  const share_dealer dealer(2, 100, 1);
  const shares_list shares{0.75, 0.25};
  EXPECT_TRUE(dealer.fits({300, 100}, shares));
  EXPECT_TRUE(dealer.fits({202, 198}, shares));  // 98 ahead
  EXPECT_FALSE(dealer.fits({200, 200}, shares));
  EXPECT_TRUE(dealer.fits({0, 100}, shares));  // a page of one piece has to lie somewhere
}

TEST(share_dealer, pages_of_one_piece_on_the_wrong_path_add_up) {
  share_dealer dealer(2, 100, 1);
  const shares_list shares{0.75, 0.25};
  ASSERT_TRUE(dealer.fits({0, 100}, shares));
  dealer.note({0, 100}, shares);
  EXPECT_FALSE(dealer.fits({0, 100}, shares));
  EXPECT_THAT(dealer.deal({100}, shares), ElementsAre(0));
}

TEST(share_dealer, what_could_not_be_had_is_not_owed_for_ever) {
  share_dealer dealer(2, 100, 1);
  dealer.note({0, 1'000'000}, {0.5, 0.5});  // the first path was full
  bytes_list got(2, 0);
  for (const std::uint32_t path : dealer.deal(bytes_list(100, 100), {0.5, 0.5})) {
    got[path] += 100;
  }
  EXPECT_LE(got[0], 5200U);
  EXPECT_GE(got[0], 5000U);
}

TEST(path_weights, are_equal_when_none_is_given) {
  EXPECT_THAT(path_weights({0, 0, 0, 0}).values(), Each(DoubleEq(0.25)));
  EXPECT_THAT(path_weights({6, 2}).values(), ElementsAre(DoubleEq(0.75), DoubleEq(0.25)));
}

TEST(path_weights, that_make_no_sense_are_refused) {
  path_weights weights({1, 1});
  EXPECT_THROW(weights.set({1}), usage_error);
  EXPECT_THROW(weights.set({1, -1}), usage_error);
  EXPECT_THROW(weights.set({0, 0}), usage_error);
  EXPECT_THAT(weights.values(), Each(DoubleEq(0.5)));
}

/// Both rates the same, one byte moved each way.
measured_rate both(double rate) { return {rate, rate, 1, 1}; }

TEST(path_weights, follow_the_rates) {
  path_weights weights({0, 0});
  weights.observe(std::vector{both(300), both(100)});
  EXPECT_THAT(weights.values(), ElementsAre(DoubleNear(0.75, 1e-12), DoubleNear(0.25, 1e-12)));
}

TEST(path_weights, follow_the_mix_of_reads_and_writes) {
  // Three bytes are read for one written: a byte takes 3/4 / 400 + 1/4 / 100 s on the first, 1/100 s on the second.
  path_weights weights({0, 0});
  weights.observe(std::vector<measured_rate>{{400, 100, 30, 10}, {100, 100, 30, 10}});
  const double first = 1 / (0.75 / 400 + 0.25 / 100);
  EXPECT_THAT(weights.values(), ElementsAre(DoubleNear(first / (first + 100), 1e-12), ::testing::_));
}

TEST(path_weights, stay_when_a_change_would_gain_next_to_nothing) {
  path_weights weights({1, 1});
  weights.observe(std::vector{both(101), both(100)});
  EXPECT_THAT(weights.values(), Each(DoubleEq(0.5)));
  weights.observe(std::vector{both(110), both(100)});
  EXPECT_NEAR(weights.values()[0], 110.0 / 210, 1e-12);
}

TEST(path_weights, an_unknown_path_keeps_its_standing) {
  path_weights weights({2, 1, 1});
  weights.observe(std::vector<measured_rate>{{}, {}, {}});
  EXPECT_THAT(weights.values(), ElementsAre(DoubleEq(0.5), DoubleEq(0.25), DoubleEq(0.25)));
  // The known two, half of the load together, turn out to be 3 to 1; the unknown one still gets the other half.
  weights.observe(std::vector<measured_rate>{{}, both(300), both(100)});
  EXPECT_THAT(weights.values(),
              ElementsAre(DoubleNear(0.5, 1e-12), DoubleNear(0.375, 1e-12), DoubleNear(0.125, 1e-12)));
}

TEST(path_weights, the_slowest_path_keeps_a_small_share) {
  path_weights weights({0, 0});
  weights.observe(std::vector{both(1e9), both(1)});
  EXPECT_GT(weights.values()[1], 0.9 * least_share);
  EXPECT_LT(weights.values()[1], 1.1 * least_share);
}

}  // namespace
}  // namespace forebay::store_detail
