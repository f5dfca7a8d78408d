#include "answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <forebay/plan/stalls.hpp>
#include <map>

namespace plan_model {
namespace {

using forebay::plan::link;
using forebay::plan::machine;
using forebay::plan::operation;
using forebay::plan::planned;
using forebay::plan::trace;

[[nodiscard]] double share(double seconds, double of) { return of > 0.0 ? seconds / of : 0.0; }

[[nodiscard]] std::vector<link_load> loads(const machine& m, const planned& p) {
  const forebay::plan::link_volume& v = p.predicted.moved;
  const double period = p.predicted.period;
  std::vector<link_load> all;
  const auto add = [&](const char* name, forebay::byte_count bytes, double rate) {
    all.push_back({name, bytes, share(static_cast<double>(bytes) / rate, period)});
  };
  add("link to the device", v.h2d, m.h2d_rate);
  add("link from the device", v.d2h, m.d2h_rate);
  if (!m.storage.empty()) {
    add("drive reads", v.storage_read, forebay::plan::storage_read_rate(m));
    add("drive writes", v.storage_written, forebay::plan::storage_write_rate(m));
  }
  return all;
}

[[nodiscard]] std::vector<std::pair<std::string, double>> idle_times(const trace& t, const machine& m,
                                                                     const planned& p) {
  std::map<std::string, double> of;
  for (const forebay::plan::stall& s : forebay::plan::find_stalls(t, p.steady, p.predicted, forebay::place::device)) {
    for (const forebay::plan::stall_cause& c : s.causes) {
      of[c.operation ? resource_of(t, m, p.steady.operations[*c.operation]) : "unknown"] += c.finish - c.start;
    }
  }
  std::vector<std::pair<std::string, double>> sorted(of.begin(), of.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

[[nodiscard]] alternative try_out(const what_if& change, const settings& s) {
  const question q = question_of(with_options(s, change.options));
  const prediction p = predict(q);
  alternative a{change, p.fits(), 0.0, 0.0, p.bound.seconds, p.bound.binding()};
  if (p.fits()) {
    a.seconds = p.seconds();
    a.tokens_per_second = q.order ? 0.0 : tokens_per_second(q, p);
  }
  return a;
}

}  // namespace

std::string resource_of(const trace& t, const machine& m, const operation& op) {
  if (op.what == operation::kind::step) {
    return t.steps[op.index].where == forebay::place::device ? "device" : "CPU";
  }
  if (op.over == link::h2d || op.over == link::d2h) {
    return op.over == link::h2d ? "link to the device" : "link from the device";
  }
  const char* direction = m.half_duplex_storage ? "" : (op.over == link::storage_read ? " reads" : " writes");
  return fmt::format("drive {}{}", op.path, direction);
}

answer find_answer(const settings& s) {
  const question q = question_of(s);
  answer a{q, predict(q), {}, {}, {}, {}, {}};
  a.enough_device = enough_device_memory(q, a.predicted);
  a.enough_host = enough_host_memory(q, a.predicted);
  if (a.predicted.plan) {
    a.links = loads(q.on.model, *a.predicted.plan);
    a.idle = idle_times(a.predicted.work.trace, q.on.model, *a.predicted.plan);
  }
  if (s.what_if) {
    for (const what_if& change : what_ifs(q, s)) {
      a.alternatives.push_back(try_out(change, s));
    }
  }
  return a;
}

}  // namespace plan_model
