#include <forebay/plan/evaluate.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "plan/detail/timed_replay.hpp"

namespace forebay::plan {
namespace {

constexpr int least_iterations = 3;
constexpr int most_iterations = 48;
constexpr double same = 1e-9;  // relative

void refuse_unknown(const char* what, std::size_t operation, std::uint32_t index, std::size_t count) {
  if (index >= count) {
    throw usage_error(fmt::format("operation {} names {} {}; there are {}", operation, what, index, count));
  }
}

void validate(const trace& t, const machine& m, const schedule& s) {
  plan::validate(m);
  const std::size_t items = t.item_bytes.size();
  if (s.at_start.size() != items || s.stored_on.size() != items) {
    throw usage_error(
        fmt::format("a schedule of {} and {} items for a trace of {}", s.at_start.size(), s.stored_on.size(), items));
  }
  for (std::size_t i = 0; i < s.operations.size(); ++i) {
    const operation& op = s.operations[i];
    const bool step = op.what == operation::kind::step;
    refuse_unknown(step ? "step" : "item", i, op.index, step ? t.steps.size() : items);
    const bool storage = op.over == link::storage_read || op.over == link::storage_write;
    if (op.what == operation::kind::transfer && storage) {
      refuse_unknown("path", i, op.path, m.storage.size());
    }
  }
}

link_volume bytes_of(const trace& t, const schedule& s) {
  link_volume v;
  for (const operation& op : s.operations) {
    if (op.what == operation::kind::transfer) {
      byte_count& bytes = op.over == link::h2d            ? v.h2d
                          : op.over == link::d2h          ? v.d2h
                          : op.over == link::storage_read ? v.storage_read
                                                          : v.storage_written;
      bytes += t.item_bytes[op.index];
    }
  }
  return v;
}

/// Whether every operation starts the same time later than an iteration before.
bool is_steady(const std::vector<operation_times>& before, const std::vector<operation_times>& now) {
  if (now.empty()) {
    return true;
  }
  const double shift = now.front().start - before.front().start;
  return std::equal(before.begin(), before.end(), now.begin(), [shift](const auto& a, const auto& b) {
    return std::abs(b.start - a.start - shift) <= same * (1.0 + std::abs(b.start));
  });
}

}  // namespace

evaluation evaluate(const trace& t, const machine& m, const schedule& s, const execution_model& model) {
  validate(t, m, s);
  evaluation result;
  detail::timed_replay replay(t, m, s, model);
  std::vector<operation_times> before;
  std::vector<double> ends;
  bool steady = false;
  while (!steady && static_cast<int>(ends.size()) < most_iterations) {
    before = replay.times();
    if (!replay.run_iteration()) {
      result.obstacle = replay.obstacle();
      return result;
    }
    ends.push_back(replay.end());
    steady = static_cast<int>(ends.size()) >= least_iterations && is_steady(before, replay.times());
  }
  result.complete = true;
  // Where starts alternate for ever, the mean over half of the iterations is the period but for the start-up.
  const std::size_t span = steady ? 1 : ends.size() / 2;
  result.period = (ends.back() - ends[ends.size() - 1 - span]) / static_cast<double>(span);
  result.times = replay.times();
  const double origin = result.times.empty() ? 0.0 : result.times.front().start;
  for (operation_times& when : result.times) {
    when = {when.start - origin, when.finish - origin};
  }
  result.moved = bytes_of(t, s);
  return result;
}

}  // namespace forebay::plan
