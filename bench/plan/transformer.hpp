#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::bench {

/// A transformer of so many layers, each with four pieces of weights, gradients, moments and activations; forward and
/// backward on the device, updates on the host. Thirty-six accesses a layer.
[[nodiscard]] inline plan::trace transformer(std::uint32_t layers) {
  constexpr std::uint32_t pieces = 4;
  constexpr byte_count bytes = 64_MiB;  // of a piece
  plan::trace t;
  const auto item = [&](std::uint32_t layer, std::uint32_t role, std::uint32_t piece) {
    return (layer * 4 + role) * pieces + piece;  // weights, gradients, moments, activations
  };
  t.item_bytes.assign(std::size_t{layers} * 4 * pieces, bytes);
  const auto step = [&](const char* phase, place where, double seconds, std::uint32_t layer,
                        const std::vector<std::pair<std::uint32_t, uses>>& roles) {
    plan::trace_step s;
    s.phase = phase;
    s.where = where;
    s.seconds = seconds;
    for (const auto& [role, how] : roles) {
      for (std::uint32_t piece = 0; piece < pieces; ++piece) {
        s.accesses.push_back({item(layer, role, piece), how});
      }
    }
    t.steps.push_back(std::move(s));
  };
  for (std::uint32_t i = 0; i < layers; ++i) {
    step("forward", place::device, 0.02, i, {{0, uses::read}, {3, uses::create}});
  }
  for (std::uint32_t i = layers; i-- > 0;) {
    step("backward", place::device, 0.04, i, {{0, uses::read}, {1, uses::create}, {3, uses::read | uses::free}});
  }
  for (std::uint32_t i = layers; i-- > 0;) {
    step("update", place::host, 0.01, i,
         {{0, uses::read | uses::write}, {1, uses::read | uses::free}, {2, uses::read | uses::write}});
  }
  return t;
}

/// With room for an eighth of the model on the device and for half of it in the host tier.
[[nodiscard]] inline plan::machine machine_for(const plan::trace& t) {
  byte_count all = 0;
  for (const byte_count bytes : t.item_bytes) {
    all += bytes;
  }
  plan::machine m;
  m.device_capacity = std::max<byte_count>(all / 8, 1_GiB);
  m.host_capacity = std::max<byte_count>(all / 2, 1_GiB);
  m.h2d_rate = m.d2h_rate = 25e9;
  m.storage = {{6e9, 4e9}};
  return m;
}

}  // namespace forebay::bench
