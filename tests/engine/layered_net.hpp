#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <forebay/engine/engine.hpp>

#include "small_engine.hpp"

namespace forebay::testing_support {

inline constexpr std::uint64_t floats = 4096;
inline constexpr byte_count block = floats * sizeof(float);
inline constexpr std::uint32_t layers = 6;

using values = std::span<float>;

// The computation, over memory of whatever kind.
inline void make_middle(values w, values in, values middle) {
  for (std::size_t i = 0; i < floats; ++i) {
    middle[i] = w[i] * in[i] + 0.25F;
  }
}
inline void make_saved(values middle, values saved) {
  for (std::size_t i = 0; i < floats; ++i) {
    saved[i] = 0.5F * middle[i] * middle[i] - 0.125F;
  }
}
inline void make_next(values in, values saved, values next) {
  for (std::size_t i = 0; i < floats; ++i) {
    next[i] = 0.75F * in[i] + 0.125F * saved[i];
  }
}
inline void go_back(values w, values in, values middle, values saved, values up, values gradient) {
  for (std::size_t i = 0; i < floats; ++i) {
    gradient[i] = saved[i] * up[i] + in[i];
    up[i] = 0.5F * up[i] + 0.25F * w[i] * middle[i];
  }
}
inline void update(values w, values gradient) {
  for (std::size_t i = 0; i < floats; ++i) {
    w[i] -= 0.01F * gradient[i];
  }
}

/// All resident: the weights after so many iterations.
inline std::vector<std::vector<float>> train_resident(std::uint64_t iterations) {
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

}  // namespace forebay::testing_support
