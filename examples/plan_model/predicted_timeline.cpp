#include "predicted_timeline.hpp"

#include <forebay/base/error.hpp>
#include <forebay/plan/stalls.hpp>

#include "answer.hpp"

namespace plan_model {
namespace {

using forebay::byte_count;
using forebay::plan::operation;
using forebay::telemetry::lane_id;
using forebay::telemetry::timeline;

[[nodiscard]] forebay::time_point at(double seconds) { return forebay::time_point{} + forebay::from_seconds(seconds); }

[[nodiscard]] std::string name_of(const workload& w, const operation& op) {
  return op.what == operation::kind::step ? w.step_names[op.index] : w.item_names[op.index];
}

void record_waits(timeline& to, lane_id lane, const prediction& p, const forebay::plan::machine& m) {
  const forebay::plan::planned& plan = *p.plan;
  for (const forebay::plan::stall& s :
       forebay::plan::find_stalls(p.work.trace, plan.steady, plan.predicted, forebay::place::device)) {
    for (const forebay::plan::stall_cause& c : s.causes) {
      std::string name = "waits";
      if (c.operation) {
        const operation& op = plan.steady.operations[*c.operation];
        name = resource_of(p.work.trace, m, op) + ": " + name_of(p.work, op);
      }
      to.record({lane, std::move(name), at(c.start), at(c.finish), 0});
    }
  }
}

}  // namespace

void record_plan(timeline& to, const prediction& p, const forebay::plan::machine& m) {
  if (!p.plan) {
    throw forebay::usage_error("no timeline without a plan");
  }
  const lane_id device = to.lane("device");
  static_cast<void>(device);
  const lane_id waits = to.lane("device waits for");
  for (const char* name : {"CPU", "link to the device", "link from the device"}) {
    static_cast<void>(to.lane(name));
  }
  record_waits(to, waits, p, m);
  const forebay::plan::schedule& s = p.plan->steady;
  for (std::size_t i = 0; i < s.operations.size(); ++i) {
    const operation& op = s.operations[i];
    if (op.what == operation::kind::drop) {
      continue;
    }
    const byte_count bytes = op.what == operation::kind::transfer ? p.work.trace.item_bytes[op.index] : 0;
    const forebay::plan::operation_times& times = p.plan->predicted.times[i];
    to.record(
        {to.lane(resource_of(p.work.trace, m, op)), name_of(p.work, op), at(times.start), at(times.finish), bytes});
  }
}

}  // namespace plan_model
