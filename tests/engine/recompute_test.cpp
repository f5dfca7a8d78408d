// Activations that are given up and made again: the same numbers as with all of them kept, whoever leaves the order.
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/testing/delayed_device.hpp>

#include "layered_net.hpp"

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_support::block;
using testing_support::floats;
using testing_support::layered;
using testing_support::layers;
using testing_support::make_middle;
using testing_support::make_next;
using testing_support::make_saved;
using testing_support::scratch_directory;
using testing_support::small_options;
using testing_support::train_resident;
using testing_support::values;

/// Room for two layers of six on the device.
engine_options options_for(recompute_policy policy, planning_policy planning, const scratch_directory* directory) {
  engine_options o = small_options(11 * block, (directory == nullptr ? 40 : 12) * block + 128_KiB, directory);
  o.recompute = policy;
  o.planning = planning;
  o.planning_effort = 0.02;
  return o;
}

TEST(recompute, gradients_equal_the_resident_run) {
  constexpr std::uint64_t iterations = 5;
  const auto expected = train_resident(iterations);
  for (const recompute_policy policy : {recompute_policy::none, recompute_policy::all, recompute_policy::automatic}) {
    for (const planning_policy planning : {planning_policy::off, planning_policy::always}) {
      for (const bool stored : {false, true}) {
        const scratch_directory directory;
        engine_options o = options_for(policy, planning, stored ? &directory : nullptr);
        testing::delayed_device_options delays;
        delays.max_h2d_delay = delays.max_d2h_delay = std::chrono::milliseconds(1);
        o.device = std::make_unique<testing::delayed_device>(std::move(o.device), delays);
        layered net(std::move(o));
        net.start();
        std::uint32_t again = 0;
        for (std::uint64_t n = 0; n < iterations; ++n) {
          again += net.train(n).recomputations;
        }
        EXPECT_EQ(net.weights(), expected) << "policy " << static_cast<int>(policy) << ", stored " << stored;
        EXPECT_EQ(net.made_again, again);
        if (policy != recompute_policy::automatic) {
          EXPECT_EQ(again, policy == recompute_policy::all ? layers * iterations : 0U);
        }
        EXPECT_LE(net.e.peak().device, net.e.capacity().device);
      }
    }
  }
}

TEST(recompute, automatic_recomputes_where_links_are_slow) {
  // Moving an activation away and back takes milliseconds, making it again microseconds.
  constexpr std::uint64_t iterations = 5;
  for (const planning_policy planning : {planning_policy::off, planning_policy::always}) {
    engine_options o = options_for(recompute_policy::automatic, planning, nullptr);
    o.device = emulated_device({11 * block, 8_MiB, 8_MiB});
    layered net(std::move(o));
    net.start();
    std::uint32_t last = 0;
    for (std::uint64_t n = 0; n < iterations; ++n) {
      last = net.train(n).recomputations;
      EXPECT_TRUE(n > 0 || last == 0) << "nothing is known yet";
    }
    EXPECT_GT(last, 0U);
    EXPECT_EQ(net.weights(), train_resident(iterations));
  }
}

TEST(recompute, whoever_leaves_the_order_finds_what_was_given_up) {
  for (const planning_policy planning : {planning_policy::off, planning_policy::always}) {
    layered net(options_for(recompute_policy::all, planning, nullptr));
    net.start();
    net.train(0);
    net.train(1);
    const auto before = net.weights();
    {  // an evaluation: forward only
      iteration it = net.e.begin(2);
      net.begin_layers(it);
      for (std::uint32_t l = 0; l < layers; ++l) {
        net.forward(it, l);
      }
      it.finish();
    }
    EXPECT_EQ(net.weights(), before);
    {  // Half of the layers, in another order; one step that comes after `before` asks first, and one of no order.
      iteration it = net.e.begin(3);
      net.begin_layers(it);
      net.forward(it, 0);
      net.forward(it, 1);
      const std::uint32_t already = net.made_again;
      std::vector<float> seen(floats);
      {
        const lease l = it.acquire("peek", {reads(net.saved[1])}, net.e.compute_stream());
        net.e.compute_stream().launch(
            [from = l.data<float>(net.saved[1]), &seen] { std::copy(from.begin(), from.end(), seen.begin()); });
      }
      EXPECT_EQ(net.made_again, already + 1);
      net.run(it, net.look_step[0], {net.middle[0]}, [](const auto&) {});
      EXPECT_EQ(net.made_again, already + 2);
      net.run(it, net.look_step[1], {net.middle[1]}, [](const auto&) {});
      EXPECT_EQ(net.made_again, already + 2) << "it was there already";
      EXPECT_THAT([&] { net.run(it, net.look_step[3], {net.middle[3]}, [](const auto&) {}); },
                  ThrowsMessage<usage_error>(AllOf(HasSubstr("h3.middle"), HasSubstr("holds nothing"))));
      it.finish();
      std::vector<float> in0(floats, 1.0F);
      std::vector<float> x(floats);
      std::vector<float> y(floats);
      std::vector<float> in1(floats);
      std::vector<float> w0 = before[0];
      std::vector<float> w1 = before[1];
      make_middle(w0, in0, x);
      make_saved(x, y);
      make_next(in0, y, in1);
      make_middle(w1, in1, x);
      make_saved(x, y);
      EXPECT_EQ(seen, y);
    }
    net.train(4);
    net.train(5);
    EXPECT_EQ(net.weights(), train_resident(4));
  }
}

TEST(recompute, threads_that_need_the_same_wait_for_the_one_that_makes_it) {
  layered net(options_for(recompute_policy::all, planning_policy::off, nullptr));
  net.start();
  std::array<std::unique_ptr<stream>, 4> streams;
  for (auto& s : streams) {
    s = net.e.device().make_stream(stream_kind::compute);
  }
  for (std::uint64_t n = 0; n < 5; ++n) {
    iteration it = net.e.begin(n);
    net.begin_layers(it);
    net.forward(it, 0);
    const std::uint32_t already = net.made_again;
    std::array<std::vector<float>, 4> seen;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      threads.emplace_back([&, i] {
        const lease l = it.acquire("peek", {reads(net.saved[0])}, *streams[i]);
        streams[i]->launch(
            [from = l.data<float>(net.saved[0]), &to = seen[i]] { to.assign(from.begin(), from.end()); });
      });
    }
    for (std::thread& t : threads) {
      t.join();
    }
    it.finish();
    EXPECT_EQ(net.made_again, already + 1);
    std::vector<float> w = net.weights()[0];
    std::vector<float> in(floats, 1.0F);
    std::vector<float> middle(floats);
    std::vector<float> saved(floats);
    make_middle(w, in, middle);
    make_saved(middle, saved);
    for (const std::vector<float>& s : seen) {
      EXPECT_EQ(s, saved);
    }
  }
}

TEST(recompute, what_a_recomputation_throws_the_acquire_throws_and_it_can_be_tried_again) {
  for (const planning_policy planning : {planning_policy::off, planning_policy::always}) {
    layered net(options_for(recompute_policy::all, planning, nullptr));
    net.start();
    net.train(0);
    net.train(1);
    {
      iteration it = net.e.begin(2);
      net.begin_layers(it);
      for (std::uint32_t l = 0; l < layers; ++l) {
        net.forward(it, l);
      }
      net.turn(it);
      net.fails = true;
      EXPECT_THAT([&] { net.backward(it, layers - 1); }, ThrowsMessage<std::runtime_error>("no more"));
      for (std::uint32_t l = layers; l-- > 0;) {
        net.backward(it, l);
      }
      net.end(it);
      it.finish();
    }
    net.train(3);
    EXPECT_EQ(net.weights(), train_resident(4));
  }
}

TEST(recompute, a_live_lease_keeps_its_tensors_while_others_are_made_again) {
  // Beside the lease that lives there is no room to make the other layer's activations again.
  engine_options o = options_for(recompute_policy::all, planning_policy::off, nullptr);
  o.device = emulated_device({.capacity = 6 * block});
  layered net(std::move(o));
  net.start();
  iteration it = net.e.begin(0);
  net.begin_layers(it);
  for (std::uint32_t l = 0; l < layers; ++l) {
    net.forward(it, l);
  }
  net.turn(it);
  net.run(it, net.look_step[5], {net.middle[5]}, [](const auto&) {});
  std::optional<lease> held(it.acquire(net.backward_step[5], net.e.compute_stream()));
  const values saved = held->data<float>(net.saved[5]);
  net.e.compute_stream().synchronize();
  const std::vector<float> before(saved.begin(), saved.end());
  EXPECT_THROW(it.acquire(net.look_step[4], net.e.compute_stream()).release(), capacity_error);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), saved.begin()));
  held.reset();
  EXPECT_NO_THROW(it.acquire(net.look_step[4], net.e.compute_stream()).release());
  it.finish();
}

TEST(recompute, refuses_what_can_not_be_made_again) {
  layered net(options_for(recompute_policy::automatic, planning_policy::off, nullptr));
  const auto refused = [&](auto change, const std::string& why) {
    std::vector<recomputation> again = net.again;
    change(again[1]);
    EXPECT_THAT([&] { net.e.set_order(net.steps, again); },
                ThrowsMessage<usage_error>(AllOf(HasSubstr("recomputation 1"), HasSubstr(why))));
  };
  refused([](recomputation& r) { r.before = step_id{1000, 0}; }, "not of the order");
  refused([](recomputation& r) { r.steps.clear(); }, "no steps");
  refused([](recomputation& r) { r.steps[0].run = {}; }, "nothing to run");
  refused([&](recomputation& r) { r.steps[0].accesses.push_back(writes(net.w[0])); }, "'h0.w'");
  refused([&](recomputation& r) { r.steps[0].accesses.push_back(creates(net.w[0])); }, "no activation");
  refused([&](recomputation& r) { r.steps[0].accesses.push_back(reads(net.in[layers])); }, "'out': it holds nothing");
  EXPECT_NO_THROW(net.e.set_order(net.steps, net.again));
}

}  // namespace
}  // namespace forebay
