#pragma once

#include <forebay/plan/evaluate.hpp>
#include <forebay/plan/machine.hpp>

namespace forebay::plan::detail {

/// What a search makes small, in seconds: the period, and as good as nothing beside it the time that all links are in
/// use, so that of schedules that are equally quick the one that moves least is taken.
[[nodiscard]] inline double cost_of(const evaluation& e, const machine& m) {
  constexpr double weight = 1e-4;
  const auto seconds = [](byte_count bytes, double rate) { return static_cast<double>(bytes) / rate; };
  const double links = seconds(e.moved.h2d, m.h2d_rate) + seconds(e.moved.d2h, m.d2h_rate) +
                       (m.storage.empty() ? 0.0
                                          : seconds(e.moved.storage_read, storage_read_rate(m)) +
                                                seconds(e.moved.storage_written, storage_write_rate(m)));
  return e.period + weight * links;
}

}  // namespace forebay::plan::detail
