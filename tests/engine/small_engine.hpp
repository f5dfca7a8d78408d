#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>

#include "scratch_directory.hpp"

namespace forebay::testing_support {

/// Options of an engine with tiny tiers; storage lies in `directory` when it is given.
inline engine_options small_options(byte_count device, byte_count host, const scratch_directory* directory = nullptr) {
  engine_options o;
  o.device = emulated_device({.capacity = device});
  o.host.capacity = host;
  o.chunk = 64_KiB;
  o.staging_chunks = 2;
  o.poison_freed_memory = true;
  o.planning = planning_policy::off;  // what is counted must not depend on when a schedule is ready
  o.stall_limit = std::chrono::milliseconds(20'000);
  if (directory != nullptr) {
    o.storage.push_back({.directory = directory->path() / "store"});
  }
  return o;
}

inline tensor_id add_floats(engine& e, const std::string& name, std::uint64_t n, role r = role::parameter) {
  return e.add({name, dtype::f32, {n}, r});
}

inline std::vector<float> ramp(std::uint64_t n, float first) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

inline std::vector<float> contents(engine& e, tensor_id t) {
  std::vector<float> values(e.spec(t).elements());
  e.read<float>(t, values);
  return values;
}

}  // namespace forebay::testing_support
