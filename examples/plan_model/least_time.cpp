#include "least_time.hpp"

#include <algorithm>
#include <array>
#include <forebay/plan/phase_bound.hpp>
#include <map>

namespace plan_model {
namespace {

using forebay::plan::resource;
using forebay::plan::trace;
using forebay::plan::window_charge;

constexpr std::uint64_t most_batches_told_apart = 3;

[[nodiscard]] std::string name_of(resource r) {
  constexpr std::array<const char*, 7> names{
      "device", "CPU", "link to the device", "link from the device", "drive reads", "drive writes", "drives"};
  return names.at(static_cast<std::size_t>(r));
}

/// The bound cuts where the phase changes, at a cost that grows with the square. Between the first forward and the last
/// backward pass many micro-batches are alike: they become one phase, which costs sharpness and never rightness.
[[nodiscard]] trace with_few_phases(const trace& t, std::uint64_t micro_batches) {
  trace few = t;
  if (micro_batches <= most_batches_told_apart) {
    return few;
  }
  std::uint64_t passes = 0;  // begun: two a micro-batch
  std::string last;
  for (forebay::plan::trace_step& s : few.steps) {
    passes += s.phase != last ? 1 : 0;
    last = s.phase;
    if (passes > 2 && passes <= 2 * micro_batches - 2) {
      s.phase = "micro-batches between";
    }
  }
  return few;
}

/// Each phase of a window once, in their order.
[[nodiscard]] std::string phases_of(const trace& t, const window_charge& w) {
  if (w.steps == t.steps.size()) {
    return "whole iteration";
  }
  std::vector<std::string> seen;
  for (std::uint32_t i = 0; i < w.steps; ++i) {
    const std::string& phase = t.steps[(w.first_step + i) % t.steps.size()].phase;
    if (std::find(seen.begin(), seen.end(), phase) == seen.end()) {
      seen.push_back(phase);
    }
  }
  std::string all;
  for (const std::string& phase : seen) {
    all += (all.empty() ? "" : ", ") + phase;
  }
  return all;
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

least_time find_least_time(const training& t, const trace& work, const forebay::plan::machine& m) {
  const trace few = with_few_phases(work, t.micro_batches);
  forebay::plan::bound_options options;
  options.single_caller = false;
  options.iterations_join = false;
  if (t.clip) {
    options.joining_phases = {"update"};
  }
  const forebay::plan::bound_result found = forebay::plan::phase_bound(few, m, options).evaluate(m);
  least_time least{found.seconds, {}};
  double sum = 0.0;
  for (const window_charge& w : found.windows) {
    sum += w.seconds;
  }
  if (sum < found.seconds * (1.0 - 1e-9)) {  // the iteration as a whole gives more
    least.charges.push_back({phases_of(few, found.whole), name_of(found.whole.binding), found.seconds});
    return least;
  }
  for (const window_charge& w : found.windows) {
    if (w.seconds > 0.0) {
      least.charges.push_back({phases_of(few, w), name_of(w.binding), w.seconds});
    }
  }
  return least;
}

}  // namespace plan_model
