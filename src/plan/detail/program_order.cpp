#include "program_order.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace forebay::plan::detail {
namespace {

using instant = std::int64_t;  // an operation's place when the schedule repeats for ever

constexpr instant never = std::numeric_limits<instant>::min() / 4;
constexpr instant forever = std::numeric_limits<instant>::max() / 4;

std::optional<breach> find_steps(const trace& t, const schedule& s, std::vector<std::size_t>& at) {
  const std::size_t none = s.operations.size();
  at.assign(t.steps.size(), none);
  for (std::size_t k = 0; k < none; ++k) {
    const operation& o = s.operations[k];
    if (static_cast<std::uint8_t>(o.what) > static_cast<std::uint8_t>(operation::kind::drop)) {
      return breach{k, {}, {}, "the operation is neither a step nor a transfer nor a drop"};
    }
    if (o.what != operation::kind::step) {
      continue;
    }
    if (o.index >= at.size()) {
      return breach{k, {}, o.index, "the trace does not have this step"};
    }
    if (at[o.index] != none) {
      return breach{k, {}, o.index, fmt::format("the step runs twice, first as operation {}", at[o.index])};
    }
    at[o.index] = k;
  }
  for (std::uint32_t i = 0; i < at.size(); ++i) {
    if (at[i] == none) {
      return breach{none, {}, i, "the step does not run"};
    }
  }
  return std::nullopt;
}

/// When the steps of one iteration of an engine run: those listed first that are not before the engine's first step,
/// and the rest one period later.
std::optional<breach> unroll(const trace& t, place engine, instant period, const std::vector<std::size_t>& at,
                             std::vector<instant>& when) {
  instant first = never;
  instant last = never;
  for (std::uint32_t i = 0; i < at.size(); ++i) {
    if (t.steps[i].where != engine) {
      continue;
    }
    instant now = static_cast<instant>(at[i]);
    first = first == never ? now : first;
    now += now < first ? period : 0;
    if (now < last) {
      return breach{at[i], {}, i, "the step runs before one that is listed before it on the same engine"};
    }
    last = now;
    when[i] = now;
  }
  return std::nullopt;
}

/// When one item was used by the steps listed so far.
struct used_span {
  instant first_change = forever;
  instant last_change = never;
  instant first = forever;
  instant last = never;
};

std::optional<breach> conflict(const trace& t, instant period, instant host_delay, const std::vector<std::size_t>& at,
                               const std::vector<instant>& when) {
  std::vector<used_span> spans(t.item_bytes.size());
  for (std::uint32_t i = 0; i < t.steps.size(); ++i) {
    const instant now = when[i] + (t.steps[i].where == place::host ? host_delay : 0);
    for (const item_access& a : t.steps[i].accesses) {
      used_span& span = spans[a.item];
      const bool changes = modifies(a.how) || has(a.how, uses::free);
      const instant after = changes ? span.last : span.last_change;
      const instant before = (changes ? span.first : span.first_change) + period;
      if (now < after || now > before) {
        return breach{at[i], a.item, i, "the step runs out of turn with a listed one that conflicts over the item"};
      }
      span.first = std::min(span.first, now);
      span.last = std::max(span.last, now);
      if (changes) {
        span.first_change = std::min(span.first_change, now);
        span.last_change = std::max(span.last_change, now);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<breach> program_order_breach(const trace& t, const schedule& s) {
  std::vector<std::size_t> at;
  if (auto wrong = find_steps(t, s, at)) {
    return wrong;
  }
  const auto period = static_cast<instant>(s.operations.size());
  std::vector<instant> when(t.steps.size(), 0);
  for (const place engine : {place::device, place::host}) {
    if (auto wrong = unroll(t, engine, period, at, when)) {
      return wrong;
    }
  }
  std::optional<breach> first;
  for (const instant delay : {instant{0}, period, -period}) {
    std::optional<breach> wrong = conflict(t, period, delay, at, when);
    if (!wrong) {
      return std::nullopt;
    }
    first = first ? first : wrong;
  }
  return first;
}

}  // namespace forebay::plan::detail
