#include "plan/detail/instants.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace forebay::plan::detail {
namespace {

bool conflicting(uses a, uses b) {
  const auto alters = [](uses u) { return modifies(u) || has(u, uses::free); };
  return alters(a) || alters(b);
}

/// Which steps of one iteration have a join before them.
std::vector<bool> joins(const trace& t, const bound_options& options) {
  std::vector<bool> result(t.steps.size(), false);
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    const std::string& phase = t.steps[s].phase;
    const bool starts = s == 0 || t.steps[s - 1].phase != phase;
    const auto& joining = options.joining_phases;
    result[s] = (s == 0 && options.iterations_join) ||
                (starts && std::find(joining.begin(), joining.end(), phase) != joining.end());
  }
  return result;
}

/// Lays out instants; device steps get all three numbers, host steps what joins say of their start.
void lay_out(instants& in, const trace& t, const std::vector<bool>& join) {
  const auto count = static_cast<std::size_t>(in.steps * in.cycles);
  in.own.assign(count, -1);
  in.join.assign(count, -1);
  in.after.assign(count, instants::unknown_past);
  in.before.assign(count, instants::unknown_future);
  std::int32_t last_join = instants::unknown_past;
  for (std::size_t s = 0; s < count; ++s) {
    if (join[s % join.size()]) {
      in.join[s] = last_join = static_cast<std::int32_t>(in.step_at.size());
      in.step_at.push_back(-1);
    }
    in.after[s] = last_join;
    if (t.steps[s % join.size()].where == place::device) {
      in.own[s] = in.after[s] = static_cast<std::int32_t>(in.step_at.size());
      in.before[s] = in.own[s] + 1;
      in.step_at.push_back(static_cast<std::int32_t>(s));
    }
  }
  in.per_cycle = static_cast<std::int32_t>(in.step_at.size()) / in.cycles;
}

/// A host step starts after the conflicting device steps before it, and has ended when those after it start.
void apply_conflicts(instants& in, const trace& t) {
  struct seen {
    std::int32_t step;
    uses how;
  };
  std::vector<std::vector<seen>> by_item(t.item_bytes.size());
  for (std::int32_t s = 0; s < in.steps * in.cycles; ++s) {
    for (const item_access& a : in.step(t, s).accesses) {
      by_item[a.item].push_back({s, a.how});
    }
  }
  for (const std::vector<seen>& accesses : by_item) {
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      // One iteration back is far enough: before that come the same steps again.
      for (std::size_t k = i; k-- > 0 && accesses[k].step > accesses[i].step - in.steps;) {
        const auto [early, late] = std::pair(accesses[k].step, accesses[i].step);
        if (conflicting(accesses[k].how, accesses[i].how)) {
          auto& after = in.after[static_cast<std::size_t>(late)];
          auto& before = in.before[static_cast<std::size_t>(early)];
          after = std::max(after, in.own[static_cast<std::size_t>(early)]);
          if (const std::int32_t own = in.own[static_cast<std::size_t>(late)]; own >= 0) {
            before = std::min(before, own);
          }
        }
      }
    }
  }
}

/// Host steps run in order, so what is known of one holds for those behind or before it; they have ended when a join
/// comes, and with a single caller when the next device step starts.
void close_over_host_order(instants& in, const trace& t, bool single_caller) {
  const std::int32_t count = in.steps * in.cycles;
  std::int32_t after = instants::unknown_past;
  for (std::int32_t s = 0; s < count; ++s) {
    if (in.step(t, s).where == place::host) {
      auto& own = in.after[static_cast<std::size_t>(s)];
      own = after = std::max(own, after);
    }
  }
  std::int32_t before = instants::unknown_future;
  for (std::int32_t s = count; s-- > 0;) {
    const auto at = static_cast<std::size_t>(s);
    if (in.step(t, s).where == place::host) {
      in.before[at] = before = std::min(in.before[at], before);
    } else if (single_caller) {
      before = std::min(before, in.own[at]);
    }
    if (in.join[at] >= 0) {
      before = std::min(before, in.join[at]);
    }
  }
}

/// Where to cut: phases' starts, then evenly spread further steps, each at its join or at the next device step.
void choose_cuts(instants& in, const trace& t, std::uint32_t extra) {
  std::set<std::uint32_t> wanted;
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    if (s == 0 || t.steps[s].phase != t.steps[s - 1].phase) {
      wanted.insert(s);
    }
  }
  for (std::uint64_t i = 1; i <= extra; ++i) {
    wanted.insert(static_cast<std::uint32_t>(i * t.steps.size() / (extra + 1)));
  }
  std::map<std::int32_t, std::uint32_t> step_of;
  for (const std::uint32_t first : wanted) {
    std::size_t s = first;  // an iteration has an instant, so the search ends within one
    while (in.join[s] < 0 && in.own[s] < 0) {
      ++s;
    }
    step_of.emplace((in.join[s] >= 0 ? in.join[s] : in.own[s]) % in.per_cycle, first);
  }
  for (const auto& [instant, step] : step_of) {
    in.cuts.push_back(instant);
    in.cut_steps.push_back(step);
  }
}

instants empty_layout(const trace& t, std::int32_t cycles) {
  instants in;
  in.steps = static_cast<std::int32_t>(t.steps.size());
  in.cycles = cycles;
  return in;
}

}  // namespace

instants concurrent_instants(const trace& t, const bound_options& options, std::int32_t cycles) {
  instants in = empty_layout(t, cycles);
  lay_out(in, t, joins(t, options));
  apply_conflicts(in, t);
  close_over_host_order(in, t, options.single_caller);
  if (in.per_cycle > 0) {
    choose_cuts(in, t, options.extra_cuts);
  }
  return in;
}

instants grant_instants(const trace& t, std::int32_t cycles) {
  instants in = empty_layout(t, cycles);
  in.per_cycle = in.steps;
  for (std::int32_t s = 0; s < in.steps * cycles; ++s) {
    in.own.push_back(s);
    in.after.push_back(s);
    in.before.push_back(s + 1);
    in.step_at.push_back(s);
  }
  return in;
}

}  // namespace forebay::plan::detail
