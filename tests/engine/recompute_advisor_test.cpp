#include <forebay/engine/detail/recompute_advisor.hpp>

#include <gtest/gtest.h>

namespace forebay::detail {
namespace {

/// One layer whose activation takes 100 seconds to move away and back, and 3 to make again.
recompute_question question(double backward_seconds = 10.0) {
  recompute_question q;
  q.base.item_bytes = {100, 100};
  q.base.steps.resize(3);
  q.base.steps[0].accesses = {{0, uses::create}};
  q.base.steps[1].accesses = {{1, uses::create | uses::free}};
  q.base.steps[2].accesses = {{0, uses::read | uses::free}};
  q.base.steps[0].seconds = 3.0;
  q.base.steps[2].seconds = backward_seconds;
  plan::trace_step again;
  again.seconds = 3.0;
  again.accesses = {{0, uses::create}};
  q.candidates = {{2, {again}}};
  q.room.device_capacity = 100;
  q.room.host_capacity = 1000;
  q.room.h2d_rate = q.room.d2h_rate = 2.0;
  q.effort = 0.01;
  return q;
}

using choice = std::vector<bool>;

class recompute_advisor_test : public testing::TestWithParam<bool> {
 protected:
  recompute_advisor_test() { advisor.reset(1); }
  std::optional<choice> advise() {
    return advisor.advise(
        [&] {
          ++asked;
          recompute_question q = question(backward_seconds);
          q.planned = GetParam();
          return q;
        },
        true);
  }
  void run(int iterations, double seconds) {
    for (int i = 0; i < iterations; ++i) {
      EXPECT_EQ(advise(), std::nullopt) << "after " << i;
      advisor.note(seconds);
    }
  }

  recompute_advisor advisor;
  double backward_seconds = 10.0;
  int asked = 0;
};

TEST_P(recompute_advisor_test, keeps_what_turns_out_faster) {
  run(2, 113.0);  // nothing is judged before the second iteration has ended
  EXPECT_EQ(advise(), choice{true});
  EXPECT_EQ(advisor.chosen(), choice{true});
  for (int i = 0; i < 30; ++i) {
    advisor.note(16.0);
    EXPECT_EQ(advise(), std::nullopt);
  }
  EXPECT_EQ(advisor.chosen(), choice{true});
}

TEST_P(recompute_advisor_test, takes_back_what_turns_out_slower_and_does_not_insist) {
  run(2, 15.0);  // far less than predicted: something is not as the model has it
  EXPECT_EQ(advise(), choice{true});
  for (int i = 0; i < 5; ++i) {
    advisor.note(15.5);
    EXPECT_EQ(advise(), std::nullopt) << "its trial has not ended";
  }
  advisor.note(15.5);
  EXPECT_EQ(advise(), choice{false});
  backward_seconds = 20.0;  // news, which is asked about again, but that set was tried
  for (int i = 0; i < 60; ++i) {
    advisor.note(15.0);
    EXPECT_EQ(advise(), std::nullopt);
  }
  EXPECT_GT(asked, 1);
  EXPECT_EQ(advisor.chosen(), choice{false});
}

TEST_P(recompute_advisor_test, refused_advice_leaves_what_was) {
  run(2, 113.0);
  EXPECT_EQ(advise(), choice{true});
  advisor.refuse();
  EXPECT_EQ(advisor.chosen(), choice{false});
  run(20, 113.0);
}

TEST_P(recompute_advisor_test, forgets_other_orders) {
  run(2, 113.0);
  EXPECT_EQ(advise(), choice{true});
  advisor.reset(1);
  EXPECT_EQ(advisor.chosen(), choice{false});
  run(2, 113.0);
  EXPECT_EQ(advise(), choice{true});
}

INSTANTIATE_TEST_SUITE_P(judged_by, recompute_advisor_test, testing::Bool(),
                         [](const auto& of) { return of.param ? "the_planner" : "look_ahead"; });

}  // namespace
}  // namespace forebay::detail
