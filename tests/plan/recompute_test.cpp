#include <forebay/plan/recompute.hpp>

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/verify.hpp>

#include "layers.hpp"

namespace forebay::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

uses use_of(const trace& t, std::size_t step, item_index item) {
  for (const item_access& a : t.steps[step].accesses) {
    if (a.item == item) {
      return a.how;
    }
  }
  return uses::none;
}

/// The first step that needs contents that are not there, in the second iteration; their number when there is none.
std::size_t first_unserved(const trace& t) {
  std::vector<bool> there(t.item_bytes.size(), true);
  for (std::size_t i = 0; i < 2 * t.steps.size(); ++i) {
    const bool second = i >= t.steps.size();
    for (const item_access& a : t.steps[i % t.steps.size()].accesses) {
      if (second && needs_contents(a.how) && !there[a.item]) {
        return i - t.steps.size();
      }
      there[a.item] = (there[a.item] || has(a.how, uses::create)) && !has(a.how, uses::free);
    }
  }
  return t.steps.size();
}

TEST(recompute, gives_up_after_the_last_use_and_makes_again_before_the_next) {
  const test::layers_trace net(3);
  const recomputing_trace r = recompute(net.steps, net.candidates, {true, false, true});
  ASSERT_EQ(r.steps.steps.size(), net.steps.steps.size() + 2);
  // Forward 0 1 2, again 2, backward 2 1, again 0, backward 0.
  EXPECT_THAT(r.position_of, ElementsAre(0, 1, 2, 4, 5, 7));
  using source = recomputing_trace::source;
  EXPECT_EQ(r.sources[3], (source{2, 0}));
  EXPECT_EQ(r.sources[6], (source{0, 0}));
  EXPECT_EQ(r.sources[7], (source{source::none, 5}));
  for (const std::size_t layer : {0U, 1U, 2U}) {
    const item_index saved = net.saved[layer];
    const bool again = layer != 1;
    EXPECT_EQ(use_of(r.steps, layer, saved), again ? uses::create | uses::free : uses::create);
    EXPECT_EQ(use_of(r.steps, r.position_of[5 - layer], saved), uses::read | uses::free);
  }
  EXPECT_EQ(use_of(r.steps, 6, net.saved[0]), uses::create);
  EXPECT_EQ(use_of(r.steps, 6, net.inputs[0]), uses::read);
  ASSERT_EQ(r.given_up.size(), 2U);
  EXPECT_EQ(r.given_up[0].step, 0U);
  EXPECT_EQ(r.given_up[0].candidate, 0U);
  EXPECT_EQ(r.given_up[1].step, 2U);
}

TEST(recompute, what_one_candidate_reads_another_may_give_up) {
  // The second candidate reads what the first one makes: until then it is kept, or made again before.
  test::layers_trace net(2);
  trace& t = net.steps;
  const auto middle = static_cast<item_index>(t.item_bytes.size());
  t.item_bytes.push_back(8);
  t.steps[0].accesses.push_back({middle, uses::create});
  t.steps[3].accesses.push_back({middle, uses::read | uses::free});
  recompute_candidate makes_middle{3, {trace_step{}}};
  makes_middle.steps[0].accesses = {{net.inputs[0], uses::read}, {middle, uses::create}};
  recompute_candidate from_middle{2, {trace_step{}}};
  from_middle.steps[0].accesses = {{middle, uses::read}, {net.saved[1], uses::create}};
  const std::vector<recompute_candidate> all{makes_middle, from_middle};
  for (const std::vector<bool>& chosen :
       {std::vector{true, true}, std::vector{true, false}, std::vector{false, true}}) {
    const recomputing_trace r = recompute(t, all, chosen);
    EXPECT_EQ(first_unserved(r.steps), r.steps.steps.size());
  }
  const recomputing_trace both = recompute(t, all, {true, true});
  EXPECT_EQ(use_of(both.steps, 0, middle), uses::create);
  EXPECT_EQ(use_of(both.steps, 2, middle), uses::read | uses::free);  // by the second candidate, its last use
}

TEST(recompute, refuses_what_can_not_be_done_again) {
  const test::layers_trace net(2);
  const auto refused = [&](const recompute_candidate& c, const char* why) {
    EXPECT_THAT([&] { static_cast<void>(recompute(net.steps, std::vector{c}, {false})); },
                ThrowsMessage<usage_error>(AllOf(HasSubstr("recomputation 0"), HasSubstr(why))));
  };
  const auto with = [&](std::uint32_t before, std::vector<item_access> accesses) {
    recompute_candidate c{before, {trace_step{}}};
    c.steps[0].accesses = std::move(accesses);
    return c;
  };
  const item_index saved = net.saved[0];
  EXPECT_NO_THROW(static_cast<void>(recompute(net.steps, std::vector{with(3, {{saved, uses::create}})}, {false})));
  refused(with(4, {{saved, uses::create}}), "step 4; there are 4");
  refused({3, {}}, "no steps");
  refused(with(3, {{99, uses::read}}), "no such item");
  refused(with(3, {{net.weights[0], uses::write}}), "only reading and creating");
  refused(with(3, {{net.saved[1], uses::read}}), "holds nothing then");  // freed by the step before
  refused(with(3, {{net.weights[0], uses::read | uses::free}}), "did not create it");
  refused(with(3, {{net.saved[1], uses::create}}), "could be given up");  // freed already
  refused(with(0, {{saved, uses::create}}), "could be given up");         // not made yet
  refused(with(3, {{saved, uses::create | uses::free}}), "holds contents then");
  EXPECT_THROW(static_cast<void>(recompute(net.steps, net.candidates, {true})), usage_error);
}

/// By all subsets, each planned as thoroughly as the ones that choose_recompute() decides among.
double best_of_all(const test::layers_trace& net, const machine& m, double effort) {
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t subset = 0; subset < 1U << net.candidates.size(); ++subset) {
    std::vector<bool> chosen;
    for (std::size_t c = 0; c < net.candidates.size(); ++c) {
      chosen.push_back(((subset >> c) & 1U) != 0);
    }
    const trace t = recompute(net.steps, net.candidates, chosen).steps;
    try {
      const planned p = plan_iteration(t, m, {.effort = effort});
      EXPECT_FALSE(verify(t, m, p.steady).has_value());
      least = std::min(least, p.predicted.period);
    } catch (const capacity_error&) {  // not this subset
    }
  }
  return least;
}

TEST(choose_recompute, is_near_the_best_subset_and_never_worse_than_none_or_all) {
  constexpr double effort = 0.02;
  std::mt19937 random(11);
  int mixed = 0;
  for (int round = 0; round < 3; ++round) {
    test::layers_trace net(4);
    net.vary(random);
    const machine m = net.tight_machine(random);
    recompute_options o;
    o.effort = 13.0 * effort;
    const recompute_choice c = choose_recompute(net.steps, net.candidates, m, o);
    EXPECT_LE(c.seconds, std::min(c.seconds_none, c.seconds_all));
    const double best = best_of_all(net, m, effort);
    EXPECT_LE(c.seconds, 1.03 * best) << "round " << round;
    EXPECT_GE(c.seconds, best) << "round " << round;
    mixed += c.seconds < 0.97 * std::min(c.seconds_none, c.seconds_all) ? 1 : 0;
  }
  EXPECT_GT(mixed, 0) << "no instance on which a mix is worth it: they show nothing";
}

TEST(choose_recompute, searches_one_dimension_of_many_candidates) {
  // A judge with a known best: so many seconds for every candidate, and those that are kept wait for a link that is too
  // slow by the square of their number. Only how many are chosen counts, and 29 of 64 is the best.
  const test::layers_trace net(64);
  const iteration_seconds judge = [&](const trace& t) {
    const auto again = static_cast<double>(t.steps.size() - net.steps.steps.size());
    return 1000.0 + (again - 29.0) * (again - 29.0);
  };
  const recompute_choice c = choose_recompute(net.steps, net.candidates, judge, judge, 40);
  EXPECT_EQ(std::count(c.chosen.begin(), c.chosen.end(), true), 29);
  EXPECT_LE(c.tried, 40U);
  EXPECT_EQ(c.seconds, 1000.0);
  EXPECT_EQ(c.seconds_none, 1000.0 + 29.0 * 29.0);
  EXPECT_EQ(c.seconds_all, 1000.0 + 35.0 * 35.0);
}

TEST(choose_recompute, keeps_everything_where_everything_fits) {
  const test::layers_trace net(4);
  machine m;
  m.device_capacity = m.host_capacity = 10'000;
  m.h2d_rate = m.d2h_rate = 1.0;
  const recompute_choice c = choose_recompute(net.steps, net.candidates, m, {.effort = 0.1});
  EXPECT_EQ(c.chosen, std::vector<bool>(4, false));
  EXPECT_LT(c.seconds_none, c.seconds_all);
}

}  // namespace
}  // namespace forebay::plan
