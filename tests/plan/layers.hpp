#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/minimum_capacity.hpp>
#include <forebay/plan/recompute.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::test {

/// Layers forward and backward, each with weights, an input that it is given, and saved activations that can be made
/// again from these. Steps: forward 0, 1, ..., backward ..., 1, 0.
struct layers_trace {
  explicit layers_trace(std::uint32_t layers) {
    for (std::uint32_t l = 0; l < layers; ++l) {
      weights.push_back(item(6));
      inputs.push_back(item(4));
      saved.push_back(item(40));
    }
    steps.steps.resize(std::size_t{2} * layers);
    candidates.resize(layers);
    for (std::uint32_t l = 0; l < layers; ++l) {
      trace_step& forward = steps.steps[l];
      forward.seconds = 10.0;
      forward.phase = "forward";
      forward.accesses = {
          {weights[l], uses::read}, {inputs[l], l == 0 ? uses::create : uses::read}, {saved[l], uses::create}};
      if (l + 1 < layers) {
        forward.accesses.push_back({inputs[l + 1], uses::create});
      }
      const std::uint32_t back = 2 * layers - 1 - l;
      trace_step& backward = steps.steps[back];
      backward.seconds = 20.0;
      backward.phase = "backward";
      backward.accesses = {{weights[l], uses::read | uses::write},
                           {inputs[l], uses::read | uses::free},
                           {saved[l], uses::read | uses::free}};
      trace_step again;
      again.seconds = forward.seconds;
      again.accesses = {{weights[l], uses::read}, {inputs[l], uses::read}, {saved[l], uses::create}};
      candidates[l] = {back, {again}};
    }
  }

  /// Other sizes and times.
  void vary(std::mt19937& random) {
    for (std::uint32_t l = 0; l < saved.size(); ++l) {
      steps.item_bytes[saved[l]] = 20 + random() % 40;
      steps.item_bytes[inputs[l]] = 2 + random() % 6;
      candidates[l].steps[0].seconds = steps.steps[l].seconds = 4.0 + static_cast<double>(random() % 12);
    }
  }

  /// With room for little more than one layer on the device, and rates with which the links take about as long as the
  /// steps.
  [[nodiscard]] machine tight_machine(std::mt19937& random) const {
    machine m;
    m.device_capacity = minimum_capacity(steps, 0).device.bytes + random() % 60;
    m.host_capacity = 100'000;
    m.h2d_rate = 1.0 + static_cast<double>(random() % 4);
    m.d2h_rate = 1.0 + static_cast<double>(random() % 4);
    return m;
  }

  trace steps;
  std::vector<item_index> weights, inputs, saved;
  std::vector<recompute_candidate> candidates;  ///< by layer

 private:
  item_index item(byte_count bytes) {
    steps.item_bytes.push_back(bytes);
    return static_cast<item_index>(steps.item_bytes.size() - 1);
  }
};

}  // namespace forebay::plan::test
