#include <forebay/plan/look_ahead.hpp>

#include <optional>
#include <utility>

#include "plan/detail/feasibility.hpp"
#include "plan/detail/residency_plan.hpp"

namespace forebay::plan {
namespace {

detail::plan_choices fixed_rule(const detail::access_lists& lists, std::uint32_t steps_ahead, double slack) {
  detail::plan_choices c;
  for (detail::tier_rule* rule : {&c.device, &c.host}) {
    const std::uint32_t positions = rule == &c.host ? detail::host_position(1, detail::host_moment::source) : 1;
    rule->by = detail::selection::density;
    rule->slack = slack;
    rule->lead = 1.0;
    rule->most_ahead = rule->longest_kept = steps_ahead * positions;
  }
  c.clock = lists.starts;
  return c;
}

}  // namespace

planned streamed_look_ahead(const trace& t, const machine& m, std::uint32_t steps_ahead,
                            const execution_model& execution) {
  detail::check_steps_fit(t, m);
  if (t.steps.empty()) {
    return {};
  }
  const detail::access_lists lists(t);
  planned result;
  constexpr double slacks[] = {0.0, 0.1, 0.25, 0.5, 0.75, 1.0};  // of the capacity: what is left to copies in transit
  for (std::uint32_t ahead = steps_ahead;; --ahead) {
    for (const double slack : slacks) {
      const detail::plan_choices choices = fixed_rule(lists, ahead, slack);
      std::optional<schedule> s = detail::emit(t, m, lists, detail::plan_residency(t, m, lists, choices));
      if (!s) {
        continue;
      }
      ++result.candidates;
      evaluation e = evaluate(t, m, *s, execution);
      if (e.complete) {
        result.steady = std::move(*s);
        result.predicted = std::move(e);
        return result;
      }
    }
    if (ahead == 0) {
      detail::report_no_schedule(t, m);
    }
  }
}

}  // namespace forebay::plan
