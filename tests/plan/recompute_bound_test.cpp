#include <forebay/plan/recompute_bound.hpp>

#include <random>

#include <gtest/gtest.h>

#include <forebay/plan/planner.hpp>

#include "layers.hpp"

namespace forebay::plan {
namespace {

std::vector<bool> subset_of(std::uint32_t subset, std::size_t n) {
  std::vector<bool> chosen;
  for (std::size_t c = 0; c < n; ++c) {
    chosen.push_back(((subset >> c) & 1U) != 0);
  }
  return chosen;
}

std::vector<std::vector<bool>> none_and_all(std::size_t n) {
  return {std::vector<bool>(n, false), std::vector<bool>(n, true)};
}

TEST(recompute_bound, is_never_above_what_any_choice_takes) {
  std::mt19937 random(3);
  double tightness = 0.0;
  for (int round = 0; round < 4; ++round) {
    test::layers_trace net(4);
    net.vary(random);
    const machine m = net.tight_machine(random);
    const certified_bound bound = find_recompute_bound(net.steps, net.candidates, m, none_and_all(4));
    EXPECT_EQ(check_recompute_certificate(net.steps, net.candidates, m, bound.proof), bound.seconds);
    double least = 1e30;
    for (std::uint32_t subset = 0; subset < 16; ++subset) {
      const trace t = recompute(net.steps, net.candidates, subset_of(subset, 4)).steps;
      const double period = plan_iteration(t, m, {.effort = 0.01}).predicted.period;
      EXPECT_LE(bound.seconds, period) << "round " << round << ", subset " << subset;
      least = std::min(least, period);
    }
    tightness += bound.seconds / least / 4.0;
  }
  EXPECT_GT(tightness, 0.85) << "on average";
}

TEST(recompute_bound, is_what_remains_where_nothing_can_be_moved) {
  // The links take a thousand times as long as everything else, and 110 bytes hold the saved activations of two layers
  // of 40, and all inputs: those of the last two are kept, those of the other three made again.
  const test::layers_trace net(5);
  machine m;
  m.device_capacity = 110;
  m.host_capacity = 100'000;
  m.h2d_rate = m.d2h_rate = 0.001;
  trace t = net.steps;
  for (const item_index w : net.weights) {
    t.item_bytes[w] = 0;
  }
  const double compute = 5 * (10.0 + 20.0);
  const double expected = compute + 3 * 10.0;
  const certified_bound bound = find_recompute_bound(t, net.candidates, m, none_and_all(5));
  EXPECT_LE(bound.seconds, expected);
  EXPECT_GE(bound.seconds, compute + 0.5 * (expected - compute));
  EXPECT_GT(find_bound(t, m).seconds, 10.0 * expected) << "without recomputing it is hopeless";
}

TEST(recompute_bound, is_the_usual_one_without_candidates_or_where_they_take_too_long) {
  std::mt19937 random(5);
  test::layers_trace net(4);
  net.vary(random);
  const machine m = net.tight_machine(random);
  const certified_bound usual = find_bound(net.steps, m);
  EXPECT_NEAR(check_recompute_certificate(net.steps, {}, m, usual.proof), usual.seconds, 1e-6 * usual.seconds);
  certificate half = usual.proof;  // so that a second of a stall is worth something
  for (std::vector<double>* prices : {&half.h2d, &half.d2h, &half.device, &half.host}) {
    for (double& p : *prices) {
      p *= 0.5;
    }
  }
  for (recompute_candidate& c : net.candidates) {
    c.steps[0].seconds = 1e9;
  }
  const double proved = check_certificate(net.steps, m, half);
  EXPECT_NEAR(check_recompute_certificate(net.steps, net.candidates, m, half), proved, 1e-6 * proved);
}

TEST(recompute_bound, decides_items_of_several_candidates_together) {
  // Two micro-batches that use the same tensors: forward, backward, forward, backward.
  test::layers_trace one(3);
  trace t = one.steps;
  const auto n = static_cast<std::uint32_t>(t.steps.size());
  std::vector<recompute_candidate> candidates = one.candidates;
  for (std::uint32_t s = 0; s < n; ++s) {
    t.steps.push_back(t.steps[s]);
  }
  for (const recompute_candidate& c : one.candidates) {
    candidates.push_back({c.before + n, c.steps});
  }
  machine m;
  m.device_capacity = 110;
  m.host_capacity = 100'000;
  m.h2d_rate = m.d2h_rate = 2.0;
  const certified_bound bound = find_recompute_bound(t, candidates, m, none_and_all(6));
  EXPECT_GE(bound.seconds, 2 * 3 * 30.0 - 1e-6);
  for (std::uint32_t subset = 0; subset < 64; subset += 7) {
    const trace chosen = recompute(t, candidates, subset_of(subset, 6)).steps;
    EXPECT_LE(bound.seconds, plan_iteration(chosen, m, {.effort = 0.01}).predicted.period);
  }
}

}  // namespace
}  // namespace forebay::plan
