#include "recompute_quality.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/ostream.h>

#include <forebay/base/clock.hpp>
#include <forebay/plan/recompute_bound.hpp>

#include "instances.hpp"

namespace forebay::bench {
namespace {

using plan::instance;

/// The backward step of the same layer: "b.m3" of "f.m3".
std::optional<std::uint32_t> backward_of(const plan::trace& t, const std::string& forward) {
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    if (t.steps[s].phase == "b." + forward.substr(2)) {
      return s;
    }
  }
  return std::nullopt;
}

/// Every layer's forward step again, for what it leaves for the backward step of the layer alone.
std::vector<plan::recompute_candidate> candidates_of(const plan::trace& t) {
  std::vector<std::uint32_t> accesses(t.item_bytes.size(), 0);
  for (const plan::trace_step& s : t.steps) {
    for (const plan::item_access& a : s.accesses) {
      ++accesses[a.item];
    }
  }
  std::vector<plan::recompute_candidate> all;
  for (const plan::trace_step& s : t.steps) {
    if (!s.phase.starts_with("f.a") && !s.phase.starts_with("f.m")) {
      continue;
    }
    plan::trace_step again = s;
    again.phase += " again";
    std::erase_if(again.accesses,
                  [&](const plan::item_access& a) { return has(a.how, uses::create) && accesses[a.item] != 2; });
    all.push_back({backward_of(t, s.phase).value(), {again}});
  }
  return all;
}

struct setting {
  const char* name = "";
  byte_count device = 0;
  byte_count host = 0;
  double link = 0.0;
};

instance base_instance(const std::string& folder) {
  for (instance& i : plan::read_instances(folder, "gpt")) {
    if (i.name.starts_with("24L cpuOpt") && !i.machine.half_duplex_storage) {
      i.machine.storage = {{6e9, 4e9}};
      return std::move(i);
    }
  }
  throw std::runtime_error("no 24-layer instance in " + folder);
}

}  // namespace

bool print_recompute(const std::string& folder, double effort, std::ostream& out) {
  const instance i = base_instance(folder);
  const std::vector<plan::recompute_candidate> candidates = candidates_of(i.trace);
  const std::size_t n = candidates.size();
  fmt::print(out,
             "\nkeep, offload or recompute: 24 layers, {} forward steps that can be run again; seconds per iteration\n"
             "{:<28}{:>9}{:>9}{:>9}{:>9}{:>10}{:>9}{:>9}\n",
             n, "machine (GB, GB/s)", "none", "all", "chosen", "bound", "again", "search s", "bound s");
  bool sound = true;
  for (const setting& s : {setting{"24/64 pc25 nv6/4", 24, 64, 25e9}, setting{"24/96 pc25 nv6/4", 24, 96, 25e9},
                           setting{"12/256 pc12 nv6/4", 12, 256, 12e9}}) {
    plan::machine m = i.machine;
    m.device_capacity = s.device * 1'000'000'000;
    m.host_capacity = s.host * 1'000'000'000;
    m.h2d_rate = m.d2h_rate = s.link;
    const time_point start = std::chrono::steady_clock::now();
    plan::recompute_options o;
    o.effort = 13.0 * effort;
    const plan::recompute_choice c = plan::choose_recompute(i.trace, candidates, m, o);
    const time_point chosen = std::chrono::steady_clock::now();
    const plan::certified_bound bound = plan::find_recompute_bound(
        i.trace, candidates, m, {std::vector<bool>(n, false), c.chosen, std::vector<bool>(n, true)});
    const time_point bounded = std::chrono::steady_clock::now();
    fmt::print(out, "{:<28}{:>9.3f}{:>9.3f}{:>9.3f}{:>9.3f}{:>10}{:>9.2f}{:>9.2f}\n", s.name, c.seconds_none,
               c.seconds_all, c.seconds, bound.seconds, std::count(c.chosen.begin(), c.chosen.end(), true),
               to_seconds(chosen - start), to_seconds(bounded - chosen));
    sound = sound && c.seconds <= std::min(c.seconds_none, c.seconds_all) && bound.seconds <= c.seconds;
  }
  return sound;
}

}  // namespace forebay::bench
