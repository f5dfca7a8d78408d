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

#include "small_engine.hpp"

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

constexpr std::uint64_t floats = 4096;
constexpr byte_count block = floats * sizeof(float);
constexpr std::uint32_t layers = 6;

using values = std::span<float>;

// The computation, over memory of whatever kind.
void make_middle(values w, values in, values middle) {
  for (std::size_t i = 0; i < floats; ++i) {
    middle[i] = w[i] * in[i] + 0.25F;
  }
}
void make_saved(values middle, values saved) {
  for (std::size_t i = 0; i < floats; ++i) {
    saved[i] = 0.5F * middle[i] * middle[i] - 0.125F;
  }
}
void make_next(values in, values saved, values next) {
  for (std::size_t i = 0; i < floats; ++i) {
    next[i] = 0.75F * in[i] + 0.125F * saved[i];
  }
}
void go_back(values w, values in, values middle, values saved, values up, values gradient) {
  for (std::size_t i = 0; i < floats; ++i) {
    gradient[i] = saved[i] * up[i] + in[i];
    up[i] = 0.5F * up[i] + 0.25F * w[i] * middle[i];
  }
}
void update(values w, values gradient) {
  for (std::size_t i = 0; i < floats; ++i) {
    w[i] -= 0.01F * gradient[i];
  }
}

/// All resident: the weights after so many iterations.
std::vector<std::vector<float>> train_resident(std::uint64_t iterations) {
  std::vector<std::vector<float>> w(layers, ramp(floats, 0.0F));
  std::vector<std::vector<float>> in(layers + 1, std::vector<float>(floats));
  std::vector<std::vector<float>> middle(layers, std::vector<float>(floats));
  std::vector<std::vector<float>> saved = middle;
  std::vector<float> gradient(floats);
  for (auto& of_layer : w) {
    for (float& x : of_layer) {
      x = 1.0F / (1.0F + x);
    }
  }
  for (std::uint64_t n = 0; n < iterations; ++n) {
    in[0].assign(floats, 1.0F);
    for (std::uint32_t l = 0; l < layers; ++l) {
      make_middle(w[l], in[l], middle[l]);
      make_saved(middle[l], saved[l]);
      make_next(in[l], saved[l], in[l + 1]);
    }
    std::vector<float> up = in[layers];
    for (std::uint32_t l = layers; l-- > 0;) {
      go_back(w[l], in[l], middle[l], saved[l], up, gradient);
      update(w[l], gradient);
    }
  }
  return w;
}

/// The same through an engine, in which a layer's middle and saved activations can be made again from its input.
class layered {
 public:
  explicit layered(engine_options options) : e(std::move(options)) {
    for (std::uint32_t l = 0; l < layers; ++l) {
      const std::string name = "h" + std::to_string(l) + ".";
      w.push_back(add_floats(e, name + "w", floats));
      in.push_back(add_floats(e, name + "in", floats, role::activation));
      middle.push_back(add_floats(e, name + "middle", floats, role::activation));
      saved.push_back(add_floats(e, name + "saved", floats, role::activation));
      gradient.push_back(add_floats(e, name + "gradient", floats, role::gradient));
    }
    in.push_back(add_floats(e, "out", floats, role::activation));
    up = add_floats(e, "up", floats, role::activation);
    describe();
  }

  void start() {
    e.set_order(steps, again);
    for (const tensor_id t : w) {
      std::vector<float> first = ramp(floats, 0.0F);
      for (float& x : first) {
        x = 1.0F / (1.0F + x);
      }
      e.write<float>(t, first);
    }
  }

  template <typename Work>
  void run(iteration& it, step_id step, std::initializer_list<tensor_id> tensors, Work work) {
    const lease l = it.acquire(step, e.compute_stream());
    enqueue(l, e.compute_stream(), tensors, work);
  }
  template <typename Work>
  static void enqueue(const lease& l, stream& on, std::initializer_list<tensor_id> tensors, Work work) {
    std::vector<values> spans;
    for (const tensor_id t : tensors) {
      spans.push_back(l.data<float>(t));
    }
    on.launch([spans = std::move(spans), work] { work(spans); });
  }

  void begin_layers(iteration& it) {
    run(it, input, {in[0]}, [](const auto& s) { std::fill(s[0].begin(), s[0].end(), 1.0F); });
  }
  void forward(iteration& it, std::uint32_t l) {
    run(it, forward_step[l], {w[l], in[l], middle[l], saved[l], in[l + 1]}, [](const auto& s) {
      make_middle(s[0], s[1], s[2]);
      make_saved(s[2], s[3]);
      make_next(s[1], s[3], s[4]);
    });
  }
  void turn(iteration& it) {
    run(it, turn_step, {in[layers], up}, [](const auto& s) { std::copy(s[0].begin(), s[0].end(), s[1].begin()); });
  }
  void backward(iteration& it, std::uint32_t l) {
    run(it, look_step[l], {middle[l]}, [](const auto&) {});
    run(it, backward_step[l], {w[l], in[l], middle[l], saved[l], up, gradient[l]},
        [](const auto& s) { go_back(s[0], s[1], s[2], s[3], s[4], s[5]); });
    run(it, update_step[l], {w[l], gradient[l]}, [](const auto& s) { update(s[0], s[1]); });
  }
  void end(iteration& it) { it.acquire(end_step, e.compute_stream()).release(); }

  iteration_report train(std::uint64_t n) {
    iteration it = e.begin(n);
    begin_layers(it);
    for (std::uint32_t l = 0; l < layers; ++l) {
      forward(it, l);
    }
    turn(it);
    for (std::uint32_t l = layers; l-- > 0;) {
      backward(it, l);
    }
    end(it);
    return it.finish();
  }

  std::vector<std::vector<float>> weights() {
    std::vector<std::vector<float>> all;
    for (const tensor_id t : w) {
      all.push_back(contents(e, t));
    }
    return all;
  }

  engine e;
  order steps;
  std::vector<recomputation> again;
  std::atomic<std::uint32_t> made_again{0};
  std::atomic<bool> fails{false};
  std::vector<tensor_id> w, in, middle, saved, gradient;
  tensor_id up;
  step_id input, turn_step, end_step;
  std::vector<step_id> forward_step, look_step, backward_step, update_step;  ///< by layer

 private:
  void describe() {
    input = steps.step("input", {creates(in[0])});
    for (std::uint32_t l = 0; l < layers; ++l) {
      forward_step.push_back(steps.step(
          "forward", {reads(w[l]), reads(in[l]), creates(middle[l]), creates(saved[l]), creates(in[l + 1])}));
    }
    turn_step = steps.step("turn", {reads(in[layers]), frees(in[layers]), creates(up)});
    look_step.resize(layers);
    backward_step.resize(layers);
    update_step.resize(layers);
    for (std::uint32_t l = layers; l-- > 0;) {
      look_step[l] = steps.step("look", {reads(middle[l])});
      backward_step[l] =
          steps.step("backward", {reads(w[l]), reads(in[l]), frees(in[l]), reads(middle[l]), frees(middle[l]),
                                  reads(saved[l]), frees(saved[l]), writes(up), creates(gradient[l])});
      update_step[l] = steps.step("update", {writes(w[l]), reads(gradient[l]), frees(gradient[l])});
      again.push_back(recomputation_of(l));
    }
    end_step = steps.step("end", {reads(up), frees(up)});
  }

  recomputation recomputation_of(std::uint32_t l) {
    recompute_step first{"middle again", {reads(w[l]), reads(in[l]), creates(middle[l])}, {}, {}, forward_step[l]};
    first.run = [this, l](const lease& held, stream* on) {
      ++made_again;
      enqueue(held, *on, {w[l], in[l], middle[l]}, [](const auto& s) { make_middle(s[0], s[1], s[2]); });
    };
    recompute_step second{"saved again", {reads(middle[l]), creates(saved[l])}, {}, {}, forward_step[l]};
    second.run = [this, l](const lease& held, stream* on) {
      if (fails.exchange(false)) {
        throw std::runtime_error("no more");
      }
      enqueue(held, *on, {middle[l], saved[l]}, [](const auto& s) { make_saved(s[0], s[1]); });
    };
    return {look_step[l], {first, second}};
  }
};

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
