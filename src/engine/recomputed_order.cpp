#include "engine/recomputed_order.hpp"

#include <utility>

namespace forebay::detail {
namespace {

/// A trace whose items are tensors: sizes and times don't matter here.
plan::trace_step over_tensors(const order_step& s) {
  plan::trace_step t;
  for (const access& a : s.accesses) {
    t.accesses.push_back({a.tensor.index, a.how});
  }
  return t;
}

std::vector<plan::recompute_candidate> candidates_of(const std::vector<recomputation>& again, const order& made) {
  std::vector<plan::recompute_candidate> all;
  std::size_t next = 0;
  for (const recomputation& r : again) {
    plan::recompute_candidate c{r.before.index, {}};
    for (std::size_t i = 0; i < r.steps.size(); ++i) {
      c.steps.push_back(over_tensors(made.steps()[next++]));
    }
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

order steps_of(const std::vector<recomputation>& again) {
  order all;
  for (const recomputation& r : again) {
    for (const recompute_step& s : r.steps) {
      all.step(s.name, s.accesses, s.options);
    }
  }
  return all;
}

recomputed_order recompute(const order& steps, const std::vector<recomputation>& again, const std::vector<bool>& chosen,
                           std::size_t tensors, const tensor_namer& name) {
  plan::trace over;
  over.item_bytes.assign(tensors, 1);
  for (const order_step& s : steps.steps()) {
    over.steps.push_back(over_tensors(s));
  }
  const order made = steps_of(again);
  std::vector<std::size_t> first_made;
  for (std::size_t r = 0, next = 0; r < again.size(); next += again[r++].steps.size()) {
    first_made.push_back(next);
  }
  plan::recomputing_trace run = plan::recompute(over, candidates_of(again, made), chosen, name);
  recomputed_order result;
  const std::size_t count = run.sources.size();
  result.given_up.resize(count);
  result.standing_before.resize(count);
  result.first_step.assign(again.size(), recomputed_order::none);
  for (std::uint32_t p = 0; p < count; ++p) {
    const auto [candidate, index] = run.sources[p];
    const bool original = candidate == plan::recomputing_trace::source::none;
    order_step s = original ? steps.steps()[index] : made.steps()[first_made[candidate] + index];
    for (std::size_t a = 0; a < s.accesses.size(); ++a) {
      s.accesses[a].how = run.steps.steps[p].accesses[a].how;
    }
    result.steps.step(s.name, std::move(s.accesses), std::move(s.options));
    if (!original && index == 0) {
      result.first_step[candidate] = p;
      result.standing_before[run.position_of[again[candidate].before.index]].push_back(candidate);
    }
  }
  for (const plan::recomputing_trace::given_up_item& g : run.given_up) {
    result.given_up[g.step].push_back({run.steps.steps[g.step].accesses[g.access].item, g.candidate});
  }
  result.sources = std::move(run.sources);
  result.position_of = std::move(run.position_of);
  return result;
}

}  // namespace forebay::detail
