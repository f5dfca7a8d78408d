// Measures the machine and writes the planner's model of it: see bench/README.md.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/memory/host_arena.hpp>
#include <forebay/memory/host_limits.hpp>
#include <forebay/plan/machine_json.hpp>

#include "devices.hpp"
#include "rates.hpp"
#include "settings.hpp"

namespace forebay::probe {
namespace {

void say(const std::string& text) { fmt::print(stderr, "{}\n", text); }

void measure_device(const settings& s, std::span<std::byte> memory, plan::machine_description& to) {
  const chosen_device chosen = choose_device(s);
  device& d = *chosen.handle;
  to.device_name = d.name();
  to.model.device_capacity = chosen.capacity;
  say("measuring the link of " + d.name());
  const pin_result pinned = d.pin(memory);
  if (!pinned.refusal.empty()) {
    say(pinned.refusal + "; copies take pageable memory");
  }
  measure_link(d, memory, {s.rounds}, to);
  d.unpin(memory);
}

plan::machine_description measure_all(const settings& s) {
  plan::machine_description d;
  const host_limit limit = available_host_memory();
  d.model.host_capacity = limit.available;
  d.host_capacity_source = limit.source;
  host_arena arena(s.size);
  const std::span<std::byte> memory = arena.memory().first(s.size);
  std::fill(memory.begin(), memory.end(), std::byte{1});
  for (const std::string& text : arena.degradations()) {
    say(text);
  }
  measure_device(s, memory, d);
  say("measuring memory copies and Adam");
  measure_copies(memory, {s.rounds}, d.compute);
  measure_adam(memory, {s.rounds}, d.compute);
  d.model.half_duplex_storage = true;  // what mixes do was measured
  for (const std::filesystem::path& directory : s.storage) {
    say("measuring " + directory.string());
    d.model.storage.push_back(measure_storage(directory, memory, {s.rounds}));
    d.storage_directories.push_back(directory.string());
  }
  return d;
}

int run(int argc, char** argv) {
  const settings s = parse(argc, argv);
  std::ofstream file;
  if (!s.json.empty()) {
    file.open(s.json);
    if (!file) {
      throw error("cannot write " + s.json.string());
    }
  }
  const plan::machine_description d = measure_all(s);
  plan::write_machine(s.json.empty() ? std::cout : file, d);
  return 0;
}

}  // namespace
}  // namespace forebay::probe

int main(int argc, char** argv) {
  try {
    return forebay::probe::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "probe: {}\n", e.what());
    return 1;
  }
}
