#include "least_time.hpp"

#include <algorithm>
#include <array>
#include <forebay/plan/bound.hpp>
#include <map>

namespace plan_model {
namespace {

using forebay::place;
using forebay::plan::bound_window;
using forebay::plan::resource;
using forebay::plan::trace;

[[nodiscard]] std::string name_of(resource r) {
  constexpr std::array<const char*, 7> names{
      "device", "CPU", "link to the device", "link from the device", "drive reads", "drive writes", "drives"};
  return names.at(static_cast<std::size_t>(r));
}

/// The phases of the device's steps that a window begins and ends with.
[[nodiscard]] std::string phases_of(const trace& t, const bound_window& w) {
  if (w.first_boundary == w.end_boundary) {
    return "whole iteration";
  }
  std::vector<const std::string*> phases;  // by device step; by host step where there are no others
  const bool device =
      std::any_of(t.steps.begin(), t.steps.end(), [](const auto& s) { return s.where == place::device; });
  for (const forebay::plan::trace_step& s : t.steps) {
    if (!device || s.where == place::device) {
      phases.push_back(&s.phase);
    }
  }
  const auto at = [&](std::int64_t boundary) {
    const auto count = static_cast<std::int64_t>(2 * phases.size());
    return *phases[static_cast<std::size_t>((boundary % count + count) % count / 2)];
  };
  const std::string from = at(w.first_boundary);
  const std::string to = at(w.end_boundary - 1);
  return from == to ? "in " + from : "from " + from + " to " + to;
}

}  // namespace

std::string least_time::binding() const {
  std::map<std::string, double> of;
  for (const charge& c : charges) {
    of[c.resource] += c.seconds;
  }
  const auto most =
      std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == of.end() ? "" : most->first;
}

least_time find_least_time(const trace& work, const forebay::plan::machine& m,
                           const forebay::plan::execution_model& execution) {
  forebay::plan::bound_search_options options;
  options.execution = execution;
  const forebay::plan::certified_bound found = forebay::plan::find_bound(work, m, options);
  least_time least{found.seconds, {}};
  for (const bound_window& w : found.windows) {
    if (w.seconds > 0.0) {
      least.charges.push_back({phases_of(work, w), name_of(w.charged), w.seconds});
    }
  }
  return least;
}

}  // namespace plan_model
