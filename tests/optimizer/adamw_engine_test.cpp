// The streamed update against the same training on plain vectors, to the bit.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <forebay/base/error.hpp>

#include "streamed_model.hpp"

namespace forebay {
namespace {

using testing_optimizer::model_options;
using testing_optimizer::plain_model;
using testing_optimizer::plenty;
using testing_optimizer::streamed_model;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_equal(streamed_model& got, const plain_model& expected) {
  for (std::size_t k = 0; k < expected.state.parameters.size(); ++k) {
    EXPECT_TRUE(same_bits(got.parameter(k), expected.state.parameters[k])) << "parameter " << k;
    EXPECT_TRUE(same_bits(got.m(k), expected.state.m[k])) << "m " << k;
    EXPECT_TRUE(same_bits(got.v(k), expected.state.v[k])) << "v " << k;
  }
}

void train_and_compare(const model_options& options, std::uint64_t iterations) {
  streamed_model streamed(options);
  plain_model plain(streamed, options);
  for (std::uint64_t n = 0; n < iterations; ++n) {
    const update_report report = streamed.iterate(n);
    EXPECT_EQ(report.gradient_norm, plain.iterate(n)) << "iteration " << n;
    EXPECT_EQ(report.step, n + 1);
    EXPECT_FALSE(report.skipped);
  }
  expect_equal(streamed, plain);
}

model_options host_update() {
  model_options o;
  o.adam.where = adamw_options::location::host;
  o.adam.subgroup_bytes = 256_KiB;
  o.adam.weight_decay = 0.1F;
  return o;
}

// Tensors of 3 to 300,000 elements, every tier as small as it can be, all state on storage: an optimizer that left a
// gradient behind, or updated stale states, would differ from the plain run, or leave a tensor unchanged.
TEST(adamw_engine, twenty_steps_from_storage_are_those_in_memory) {
  const model_options options = host_update();
  streamed_model streamed(options);
  plain_model plain(streamed, options);
  for (std::uint64_t n = 0; n < 20; ++n) {
    std::vector<std::vector<float>> before;
    for (std::size_t k = 0; k < options.sizes.size(); ++k) {
      before.push_back(streamed.parameter(k));
    }
    EXPECT_EQ(streamed.iterate(n).gradient_norm, plain.iterate(n));
    for (std::size_t k = 0; k < options.sizes.size(); ++k) {
      EXPECT_FALSE(same_bits(streamed.parameter(k), before[k])) << "tensor " << k << " unchanged by step " << n;
    }
  }
  expect_equal(streamed, plain);
  EXPECT_GT(streamed.last_iteration().moved.storage_read, 0U);
  EXPECT_GT(streamed.last_iteration().moved.storage_written, 0U);
  EXPECT_LE(streamed.owner().peak().host, streamed.owner().capacity().host);
  EXPECT_LE(streamed.owner().peak().device, streamed.owner().capacity().device);
}

TEST(adamw_engine, subgroups_change_nothing) {
  for (const byte_count subgroup : {byte_count{1}, 64_KiB, 1_MiB, 16_MiB}) {
    model_options options = host_update();
    options.adam.subgroup_bytes = subgroup;
    options.adam.clip_norm = 2.0F;
    SCOPED_TRACE(subgroup);
    train_and_compare(options, 3);
  }
}

TEST(adamw_engine, threads_change_nothing) {
  for (const unsigned threads : {1U, 2U, 4U}) {
    model_options options = host_update();
    options.adam.threads = threads;
    options.adam.clip_norm = 2.0F;
    SCOPED_TRACE(threads);
    train_and_compare(options, 3);
  }
}

TEST(adamw_engine, the_place_changes_nothing) {
  using location = adamw_options::location;
  const auto train = [](location where, std::optional<tier_bytes> capacity) {
    model_options options = host_update();
    options.adam.where = where;
    options.adam.clip_norm = 2.0F;
    options.capacity = capacity;
    SCOPED_TRACE(static_cast<int>(where));
    train_and_compare(options, 3);
  };
  train(location::host, std::nullopt);
  train(location::device, std::nullopt);
  train(location::host, plenty);
  train(location::device, plenty);
  train(location::automatic, plenty);
}

TEST(adamw_engine, without_storage_the_host_is_home) {
  model_options options = host_update();
  options.storage = false;
  train_and_compare(options, 3);
}

TEST(adamw_engine, an_order_recorded_in_the_first_iteration_serves_as_well) {
  for (const adamw_options::location where : {adamw_options::location::host, adamw_options::location::device}) {
    model_options options = host_update();
    options.adam.where = where;
    options.recorded = true;
    options.capacity = plenty;
    train_and_compare(options, 4);
  }
}

// The twelve tensors with gradient, m and v are 6.9 MiB.
TEST(adamw_engine, runs_where_the_state_is) {
  for (const byte_count device : {byte_count{6_MiB}, byte_count{8_MiB}}) {
    model_options options = host_update();
    options.adam.where = adamw_options::location::automatic;
    options.capacity = tier_bytes{device, 16_MiB, 0};
    streamed_model model(options);
    const order_step& last = model.owner().current_order().steps().back();
    EXPECT_EQ(last.name, "update 0");
    EXPECT_EQ(last.options.where, device == 6_MiB ? place::host : place::device);
  }
}

// The gradients of four micro-batches, kept between them wherever there is room, add up to the resident run's.
TEST(adamw_engine, accumulated_gradients_are_those_in_memory) {
  model_options options = host_update();
  options.micro_batches = 4;
  train_and_compare(options, 5);
}

// Gradients of about 1, a limit of 1e-3: the update is the clipped one, the reported norm the true one.
TEST(adamw_engine, clipping_reaches_the_update) {
  model_options options = host_update();
  options.adam.clip_norm = 1e-3F;
  options.adam.eps = 1e-3F;  // large enough that the scale of gradients shows in the update
  streamed_model streamed(options);
  plain_model plain(streamed, options);
  long double exact = 0.0L;
  for (std::size_t k = 0; k < options.sizes.size(); ++k) {
    const std::vector<float> p = streamed.initial(k);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const auto g = static_cast<long double>(testing_optimizer::slope(p[i], k, i, 0));
      exact += g * g;
    }
  }
  const update_report report = streamed.iterate(0);
  plain.iterate(0);
  EXPECT_NEAR(report.gradient_norm, static_cast<double>(std::sqrt(exact)), 1e-9);
  EXPECT_NEAR(static_cast<double>(report.clip_scale) * report.gradient_norm, 1e-3, 1e-9);
  expect_equal(streamed, plain);
  options.adam.clip_norm = 0.0F;
  streamed_model unclipped(options);
  EXPECT_EQ(unclipped.iterate(0).clip_scale, 1.0F);
  EXPECT_FALSE(same_bits(unclipped.parameter(4), streamed.parameter(4)));
}

TEST(adamw_engine, a_gradient_that_is_not_finite_skips_the_whole_step) {
  for (const adamw_options::location where : {adamw_options::location::host, adamw_options::location::device}) {
    model_options options = host_update();
    options.adam.where = where;
    options.disturbances = {{2, 8, 4096, std::numeric_limits<float>::infinity()},
                            {2, 5, 4, std::numeric_limits<float>::quiet_NaN()},
                            {4, 0, 0, -std::numeric_limits<float>::infinity()}};
    streamed_model streamed(options);
    plain_model plain(streamed, options);
    for (std::uint64_t n = 0; n < 6; ++n) {
      const update_report report = streamed.iterate(n);
      const bool bad = n == 2 || n == 4;
      EXPECT_EQ(report.skipped, bad) << n;
      EXPECT_EQ(report.non_finite_tensor, n == 2 ? "g5" : n == 4 ? "g0" : "") << n;
      EXPECT_EQ(std::isfinite(report.gradient_norm), !bad) << n;
      if (!bad) {
        EXPECT_EQ(report.gradient_norm, plain.iterate(n));
      }
      EXPECT_EQ(report.step, plain.steps);
      EXPECT_EQ(streamed.optimizer().step(), plain.steps);
      expect_equal(streamed, plain);
    }
  }
}

// Weights written over a run's own are used as they are: there is no older copy for an update to bring back.
TEST(adamw_engine, loaded_weights_stay) {
  model_options options = host_update();
  options.adam.weight_decay = 0.0F;
  streamed_model streamed(options);
  const auto loaded = [&](std::size_t k) {
    std::vector<float> w = streamed.initial(k);
    for (float& x : w) {
      x = 3.0F - 2.0F * x;
    }
    return w;
  };
  for (std::size_t k = 0; k < options.sizes.size(); ++k) {
    streamed.set_parameter(k, loaded(k));
  }
  streamed.options().zero_gradients = true;
  streamed.iterate(0);
  plain_model plain(streamed, options);
  for (std::size_t k = 0; k < options.sizes.size(); ++k) {
    EXPECT_TRUE(same_bits(streamed.parameter(k), loaded(k))) << k;
    plain.state.parameters[k] = loaded(k);
  }
  plain.steps = 1;  // the zero step counted and changed nothing
  streamed.options().zero_gradients = false;
  streamed.iterate(1);
  plain.iterate(1);
  expect_equal(streamed, plain);
}

TEST(adamw_engine, the_learning_rate_may_change_between_steps) {
  model_options options = host_update();
  options.adam.lr = 0.0F;
  options.adam.eps = 1e-8F;
  streamed_model streamed(options);
  streamed.iterate(0);
  EXPECT_TRUE(same_bits(streamed.parameter(6), streamed.initial(6))) << "a rate of zero";
  streamed.optimizer().set_lr(0.5F);
  streamed.iterate(1);
  EXPECT_FALSE(same_bits(streamed.parameter(6), streamed.initial(6)));
}

// A resumed run that sets moments and count goes on like one that never stopped.
TEST(adamw_engine, the_count_of_steps_may_be_restored) {
  const model_options options = host_update();
  streamed_model whole(options);
  for (std::uint64_t n = 0; n < 4; ++n) {
    whole.iterate(n);
  }
  streamed_model first(options);
  first.iterate(0);
  first.iterate(1);
  streamed_model second(options);
  for (std::size_t k = 0; k < options.sizes.size(); ++k) {
    second.set_parameter(k, first.parameter(k));
    second.set_moments(k, first.m(k), first.v(k));
  }
  second.optimizer().set_step(2);
  second.iterate(2);
  second.iterate(3);
  EXPECT_EQ(second.optimizer().step(), 4U);
  for (std::size_t k = 0; k < options.sizes.size(); ++k) {
    EXPECT_TRUE(same_bits(second.parameter(k), whole.parameter(k))) << k;
  }
}

TEST(adamw_engine, shows_its_work_on_the_timeline) {
  telemetry::timeline timeline;
  model_options options = host_update();
  options.timeline = &timeline;
  streamed_model model(options);
  model.iterate(0);
  const telemetry::lane_id lane = timeline.lane("optimizer");
  std::size_t updates = 0;
  for (const telemetry::slice& s : timeline.slices()) {
    updates += s.lane == lane && s.name.rfind("update ", 0) == 0 ? 1 : 0;
  }
  std::size_t expected = 0;
  for (const order_step& s : model.owner().current_order().steps()) {
    expected += s.name.rfind("update ", 0) == 0 ? 1 : 0;
  }
  EXPECT_GT(expected, 1U);
  EXPECT_EQ(updates, expected);
}

}  // namespace
}  // namespace forebay
