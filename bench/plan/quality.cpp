#include "quality.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <fmt/ostream.h>

#include <forebay/base/clock.hpp>
#include <forebay/base/error.hpp>
#include <forebay/plan/bound.hpp>
#include <forebay/plan/planner.hpp>
#include <forebay/plan/split.hpp>
#include <forebay/plan/verify.hpp>

#include "generated.hpp"
#include "instances.hpp"

namespace forebay::bench {
namespace {

using plan::instance;

struct outcome {
  double period = 0.0;
  double seconds = 0.0;
  bool sound = true;
};

outcome plan_one(const plan::trace& t, const instance& i, double known, double effort) {
  plan::planner_options o;
  o.effort = effort;
  o.known_bound = known;
  const time_point start = std::chrono::steady_clock::now();
  const plan::planned p = plan::plan_iteration(t, i.machine, o);
  outcome result{p.predicted.period, to_seconds(std::chrono::steady_clock::now() - start), true};
  result.sound = !plan::verify(t, i.machine, p.steady);
  return result;
}

struct column {
  std::string name;
  std::vector<double> ratios;
};

std::string cell(double ratio) { return ratio > 0.0 ? fmt::format("{:8.3f}", ratio) : fmt::format("{:>8}", "-"); }

double rule_period(const instance& i, const std::string& rule) {
  return i.baselines.contains(rule) && i.baselines[rule].is_number() ? i.baselines[rule].get<double>() : 0.0;
}

const std::vector<std::string> rules{"lru",    "furthest_next_use",  "lookahead_1", "lookahead_4",
                                     "window", "zero_infinity_like", "g10_like"};

void print_summary(std::ostream& out, const column& c) {
  if (c.ratios.empty()) {
    return;
  }
  std::vector<double> sorted = c.ratios;
  std::sort(sorted.begin(), sorted.end());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  fmt::print(out, "  {}: mean {:.4f}, median {:.4f}, worst {:.4f} of {}\n", c.name, mean, sorted[sorted.size() / 2],
             sorted.back(), sorted.size());
}

bool print_kind(const std::string& folder, const std::string& kind, unsigned parts, double effort, std::ostream& out) {
  const bool exact = kind == "tiny";
  column whole{exact ? "whole items over the optimum" : "whole items over the bound", {}};
  column split{fmt::format("in {} parts over the bound for whole items", parts), {}};
  bool sound = true;
  double slowest = 0.0;
  fmt::print(out, "\n{}\n{:<48}{:>8}{:>8}{:>8}", kind, "instance", "bound s", "plan", "parts");
  for (const std::string& rule : rules) {
    fmt::print(out, " {:>8.8}", rule);
  }
  fmt::print(out, "{:>9}\n", "seconds");
  for (const instance& i : plan::read_instances(folder, kind)) {
    const double least = i.optimum.value_or(i.lower_bound);
    const outcome one = plan_one(i.trace, i, least, effort);
    sound = sound && one.sound && one.period >= least * (1.0 - 1e-8);
    slowest = std::max(slowest, one.seconds);
    whole.ratios.push_back(one.period / least);
    double in_parts = 0.0;
    if (!exact && parts > 1) {
      const outcome many = plan_one(plan::split_items_evenly(i.trace, parts).parts, i, i.lower_bound, effort);
      sound = sound && many.sound;
      slowest = std::max(slowest, many.seconds);
      in_parts = many.period / i.lower_bound;
      split.ratios.push_back(in_parts);
    }
    fmt::print(out, "{:<48.47}{:8.3g}{}{}", i.name, least, cell(one.period / least), cell(in_parts));
    for (const std::string& rule : rules) {
      fmt::print(out, " {}", cell(rule_period(i, rule) / least));
    }
    fmt::print(out, "{:9.3f}\n", one.seconds);
  }
  print_summary(out, whole);
  print_summary(out, split);
  fmt::print(out, "  slowest plan: {:.3f} s\n", slowest);
  return sound;
}

struct worst_case {
  double ratio = 0.0;
  std::string name;
  double bound = 0.0;
  double harder = 0.0;  // the ratio with ten times the effort
};

/// Plans one instance, adds its ratio and remembers the worst. Returns whether the schedule is sound.
bool plan_generated(const plan::trace& t, const instance& i, bool whole, double effort, column& c, worst_case& worst) {
  plan::bound_search_options o;
  o.items_move_whole = whole;
  const double bound = plan::find_bound(t, i.machine, o).seconds;
  const outcome one = plan_one(t, i, bound, effort);
  c.ratios.push_back(one.period / bound);
  if (c.ratios.back() > worst.ratio) {
    const outcome more = plan_one(t, i, bound, 10.0 * effort);
    worst = {c.ratios.back(), i.name, bound, more.period / bound};
  }
  return one.sound && one.period >= bound * (1.0 - 1e-8);
}

void print_worst(std::ostream& out, const worst_case& w) {
  fmt::print(out, "    worst: {}, bound {:.4g} s, {:.4f} with ten times the effort\n", w.name, w.bound, w.harder);
}

}  // namespace

bool print_generated(std::uint32_t seeds, unsigned parts, double effort, std::ostream& out) {
  bool sound = true;
  for (const char* kind : {"gpt", "random", "adversarial"}) {
    column whole{"whole items over their bound", {}};
    column split{fmt::format("in {} parts over theirs", parts), {}};
    worst_case whole_worst;
    worst_case split_worst;
    std::uint32_t without = 0;
    for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
      const instance i = generate(kind, seed);
      try {
        sound = plan_generated(i.trace, i, true, effort, whole, whole_worst) && sound;
        const plan::trace t = plan::split_items_evenly(i.trace, parts).parts;
        sound = plan_generated(t, i, false, effort, split, split_worst) && sound;
      } catch (const capacity_error&) {
        ++without;
      }
    }
    fmt::print(out, "\ngenerated {}; no schedule found for {} of {}\n", kind, without, seeds);
    print_summary(out, whole);
    print_worst(out, whole_worst);
    print_summary(out, split);
    print_worst(out, split_worst);
  }
  return sound;
}

bool print_quality(const std::string& folder, unsigned parts, double effort, std::ostream& out) {
  fmt::print(out,
             "Periods over the certified bound (tiny: over the optimum). The rules' are from the instance files.\n");
  bool sound = true;
  for (const char* kind : {"gpt", "adversarial", "random", "tiny"}) {
    sound = print_kind(folder, kind, parts, effort, out) && sound;
  }
  return sound;
}

}  // namespace forebay::bench
