// How good schedules are, and how long they take to make. See bench/README.md.
#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <string>

#include <fmt/ostream.h>
#include <CLI/CLI.hpp>

#include <forebay/base/clock.hpp>
#include <forebay/plan/phase_bound.hpp>
#include <forebay/plan/placement.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/verify.hpp>

#include "quality.hpp"
#include "recompute_quality.hpp"
#include "transformer.hpp"

namespace forebay::bench {
namespace {

std::size_t accesses_of(const plan::trace& t) {
  std::size_t n = 0;
  for (const plan::trace_step& s : t.steps) {
    n += s.accesses.size();
  }
  return n;
}

template <typename Do>
double seconds_of(Do&& what) {
  const time_point start = std::chrono::steady_clock::now();
  what();
  return to_seconds(std::chrono::steady_clock::now() - start);
}

bool print_speed(double effort, std::ostream& out) {
  bool sound = true;
  fmt::print(out, "\nspeed on transformers, one core\n{:>8}{:>10}{:>9}{:>10}{:>10}{:>10}{:>10}{:>11}\n", "layers",
             "accesses", "plan s", "verify s", "place s", "bound s", "T/bound", "peak MB");
  for (const std::uint32_t layers : {8U, 69U, 694U, 2777U}) {
    const plan::trace t = transformer(layers);
    const plan::machine m = machine_for(t);
    plan::planned p;
    const double planning = seconds_of([&] { p = plan::plan_iteration(t, m, {.effort = effort}); });
    const double verifying = seconds_of([&] { sound = !plan::verify(t, m, p.steady) && sound; });
    const double placing = seconds_of([&] { static_cast<void>(plan::place_on_device(t, p.steady)); });
    double bound = 0.0;
    const double bounding = seconds_of([&] {
      plan::bound_options o;
      o.single_caller = o.iterations_join = false;
      bound = plan::phase_bound(t, m, o).evaluate(m).seconds;
    });
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print(out, "{:>8}{:>10}{:>9.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.4f}{:>11}\n", layers, accesses_of(t), planning,
               verifying, placing, bounding, p.predicted.period / bound, usage.ru_maxrss / 1024);
  }
  return sound;
}

}  // namespace
}  // namespace forebay::bench

int main(int argc, char** argv) {
  CLI::App app{"Schedules beside the bound, the optimum and simple rules; and how long planning takes.", "bench_plan"};
  std::string folder = FOREBAY_INSTANCES;
  unsigned parts = 4;
  double effort = 1.0;
  std::uint32_t generated = 0;
  bool no_quality = false;
  bool no_speed = false;
  bool no_recompute = false;
  app.add_option("--instances", folder, "Folder of the instance files");
  app.add_option("--parts", parts, "So many parts of each item in the second column; 1: none")
      ->check(CLI::Range(1, 64));
  app.add_option("--effort", effort, "Of the planner; 1 is about half a second a plan")->check(CLI::NonNegativeNumber);
  app.add_option("--generate", generated,
                 "So many further instances of each kind, made from seeds, beside their bounds");
  app.add_flag("--no-quality", no_quality, "Leave the instances out");
  app.add_flag("--no-speed", no_speed, "Leave the speed by size out");
  app.add_flag("--no-recompute", no_recompute, "Leave the choice of what to recompute out");
  CLI11_PARSE(app, argc, argv);
  bool sound = true;
  if (!no_quality) {
    sound = forebay::bench::print_quality(folder, parts, effort, std::cout) && sound;
  }
  if (!no_recompute) {
    sound = forebay::bench::print_recompute(folder, effort, std::cout) && sound;
  }
  if (generated > 0) {
    sound = forebay::bench::print_generated(generated, parts, effort, std::cout) && sound;
  }
  if (!no_speed) {
    sound = forebay::bench::print_speed(effort, std::cout) && sound;
  }
  if (!sound) {
    std::cerr << "a schedule breaks a rule, or is better than can be\n";
    return 1;
  }
  return 0;
}
