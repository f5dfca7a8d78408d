// Iterations that follow a schedule: they give the same numbers, end when callers do something else, and come back.
#include <gtest/gtest.h>

#include <forebay/engine/engine.hpp>

#include "small_engine.hpp"

namespace forebay {
namespace {

using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

constexpr std::uint32_t layers = 12;
constexpr byte_count block = 64_KiB;
constexpr std::uint64_t elements = block / sizeof(float);

// Layers of one weight each, of which the device holds three and the host six. A forward step makes an activation, a
// backward step uses it up and adds one to its layer's weight; a host step adds one more.
class chain {
 public:
  explicit chain(planning_policy planning)
      : engine_([&] {
          engine_options o = small_options(3 * block + 4_KiB, 6 * block + 2 * 64_KiB, &directory_);
          o.planning = planning;
          o.planning_effort = 0.1;
          o.packed_block_bytes = block;
          return o;
        }()) {
    for (std::uint32_t i = 0; i < layers; ++i) {
      weights_.push_back(add_floats(engine_, "w" + std::to_string(i), elements));
      activations_.push_back(add_floats(engine_, "a" + std::to_string(i), elements / 4, role::activation));
    }
    order o;
    step_options on_device;
    on_device.workspace = 512;
    for (std::uint32_t i = 0; i < layers; ++i) {
      o.step("forward" + std::to_string(i), {reads(weights_[i]), creates(activations_[i])}, on_device);
    }
    for (std::uint32_t i = layers; i-- > 0;) {
      o.step("backward" + std::to_string(i), {writes(weights_[i]), reads(activations_[i]), frees(activations_[i])},
             on_device);
    }
    step_options on_host;
    on_host.where = place::host;
    for (std::uint32_t i = 0; i < layers; ++i) {
      o.step("update" + std::to_string(i), {writes(weights_[i])}, on_host);
    }
    engine_.set_order(o);
    for (std::uint32_t i = 0; i < layers; ++i) {
      engine_.write<float>(weights_[i], ramp(elements, static_cast<float>(i)));
    }
  }

  // `run_update`: whether a layer's update takes place.
  template <typename RunUpdate>
  iteration_report iterate(RunUpdate&& run_update) {
    iteration it = engine_.begin(number_++);
    for (std::uint32_t s = 0; s < 2 * layers; ++s) {
      const std::uint32_t layer = s < layers ? s : 2 * layers - 1 - s;
      const bool forward = s < layers;
      const lease l = it.acquire(step_id{s, 0}, engine_.compute_stream());
      const std::span<float> w = l.data<float>(weights_[layer]);
      const std::span<float> a = l.data<float>(activations_[layer]);
      engine_.compute_stream().launch([=] {
        if (forward) {
          std::copy_n(w.begin(), a.size(), a.begin());
          return;
        }
        const bool same = std::equal(a.begin(), a.end(), w.begin());
        for (float& x : w) {
          x += same ? 1.0F : 1e6F;
        }
      });
      added_[layer] += forward ? 0.0F : 1.0F;
    }
    for (std::uint32_t i = 0; i < layers; ++i) {
      if (run_update(i)) {
        const lease l = it.acquire(step_id{2 * layers + i, 0});
        for (float& x : l.data<float>(weights_[i])) {
          x += 1.0F;
        }
        added_[i] += 1.0F;
      }
    }
    return it.finish();
  }

  iteration_report iterate() {
    return iterate([](std::uint32_t) { return true; });
  }

  // Until an iteration has followed a schedule.
  bool reaches_a_schedule() {
    for (int i = 0; i < 20; ++i) {
      if (iterate().planned) {
        return true;
      }
    }
    return false;
  }

  void expect_right_numbers() {
    for (std::uint32_t i = 0; i < layers; ++i) {
      EXPECT_EQ(contents(engine_, weights_[i]), ramp(elements, static_cast<float>(i) + added_[i])) << i;
    }
  }

  engine& get() { return engine_; }
  [[nodiscard]] tensor_id weight(std::uint32_t i) const { return weights_[i]; }
  void note_added(std::uint32_t layer, float by) { added_[layer] += by; }

 private:
  scratch_directory directory_;
  engine engine_;
  std::vector<tensor_id> weights_;
  std::vector<tensor_id> activations_;
  std::vector<float> added_ = std::vector<float>(layers, 0.0F);
  std::uint64_t number_ = 0;
};

TEST(follow, a_schedule_is_followed_iteration_after_iteration) {
  chain c(planning_policy::always);
  ASSERT_TRUE(c.reaches_a_schedule());
  int planned = 0;
  for (int i = 0; i < 12; ++i) {
    const iteration_report r = c.iterate();
    planned += r.planned ? 1 : 0;
    EXPECT_TRUE(!r.planned || r.misses == 0) << i;
    EXPECT_GT(r.predicted_seconds, 0.0) << i;
  }
  EXPECT_GE(planned, 11);  // one may find the free memory in pieces: from then on addresses are as planned
  c.expect_right_numbers();
}

TEST(follow, without_planning_no_iteration_is_planned) {
  chain c(planning_policy::off);
  EXPECT_FALSE(c.reaches_a_schedule());
  c.expect_right_numbers();
}

TEST(follow, skipped_steps_end_it_for_the_iteration_alone) {
  chain c(planning_policy::always);
  ASSERT_TRUE(c.reaches_a_schedule());
  EXPECT_FALSE(c.iterate([](std::uint32_t i) { return i % 3 != 1; }).planned);
  EXPECT_TRUE(c.reaches_a_schedule());
  c.expect_right_numbers();
}

TEST(follow, a_pass_in_between_is_served_from_where_things_are) {
  chain c(planning_policy::always);
  ASSERT_TRUE(c.reaches_a_schedule());
  {
    iteration evaluation = c.get().begin(1000);
    float sum = 0.0F;
    for (std::uint32_t i = layers; i-- > 0;) {
      const lease l = evaluation.acquire("evaluate", {reads(c.weight(i))}, c.get().compute_stream());
      c.get().compute_stream().launch([&sum, w = l.data<float>(c.weight(i))] { sum += w.front(); });
    }
    EXPECT_FALSE(evaluation.finish().planned);
    EXPECT_GT(sum, 0.0F);
  }
  EXPECT_TRUE(c.reaches_a_schedule());
  c.expect_right_numbers();
}

TEST(follow, contents_written_before_every_iteration_do_not_end_it) {
  chain c(planning_policy::always);
  ASSERT_TRUE(c.reaches_a_schedule());
  int planned = 0;
  for (int n = 0; n < 8; ++n) {
    for (std::uint32_t i = 0; i < layers; ++i) {  // wherever it lies, and with however many copies
      std::vector<float> w = contents(c.get(), c.weight(i));
      for (float& x : w) {
        x += 1.0F;
      }
      c.get().write<float>(c.weight(i), w);
      c.note_added(i, 1.0F);
    }
    const iteration_report r = c.iterate();
    planned += r.planned ? 1 : 0;
    EXPECT_TRUE(!r.planned || r.misses == 0) << n;
  }
  EXPECT_GE(planned, 7);  // one may find the free memory in pieces: from then on addresses are as planned
  c.expect_right_numbers();
}

TEST(follow, contents_written_in_between_are_used) {
  chain c(planning_policy::always);
  ASSERT_TRUE(c.reaches_a_schedule());
  for (const std::uint32_t i : {0U, 5U, layers - 1}) {
    std::vector<float> now = contents(c.get(), c.weight(i));
    for (float& x : now) {
      x += 100.0F;
    }
    c.get().write<float>(c.weight(i), now);
    c.note_added(i, 100.0F);
  }
  EXPECT_TRUE(c.reaches_a_schedule());
  c.expect_right_numbers();
}

TEST(follow, an_iteration_that_is_given_up_leaves_no_trace_in_the_next) {
  chain c(planning_policy::always);
  ASSERT_TRUE(c.reaches_a_schedule());
  {
    iteration abandoned = c.get().begin(2000);
    const lease l = abandoned.acquire(step_id{0, 0}, c.get().compute_stream());
    c.get().compute_stream().launch([] {});
  }
  EXPECT_TRUE(c.reaches_a_schedule());
  c.expect_right_numbers();
}

}  // namespace
}  // namespace forebay
