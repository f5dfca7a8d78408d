#include "prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <forebay/base/error.hpp>

namespace plan_model {
namespace {

using forebay::byte_count;
using forebay::place;
using forebay::uses;

constexpr double largest_part = 0.03;          // of a tier: what moves as one
constexpr double largest_group = 0.05;         // of the device tier: what layers that are merged take at once
constexpr std::uint64_t many_accesses = 8000;  // planned in some tens of milliseconds

[[nodiscard]] byte_count part_of(byte_count capacity) {
  return std::max<byte_count>(static_cast<byte_count>(largest_part * static_cast<double>(capacity)), 64 << 10U);
}

[[nodiscard]] std::uint64_t accesses_of(const training& t, const granularity& g) {
  std::uint64_t all = 0;
  for (const block& b : steps_of(t, g)) {
    const std::uint64_t pieces =
        std::max({std::uint64_t{1}, forebay::ceil_div(b.parameters * size_of(t.type), g.device_part),
                  forebay::ceil_div(b.parameters * state_bytes(t), g.host_part)});
    all += 3 * pieces + t.micro_batches * (3 * pieces + 6);
  }
  return all;
}

/// The weights, gradients and activations of the largest step.
[[nodiscard]] double largest_step(const training& t, const granularity& g) {
  double most = 0.0;
  const std::vector<block> all = steps_of(t, g);
  for (std::size_t b = 1; b + 1 < all.size(); ++b) {
    const auto activations = static_cast<double>(all[b].saved * tokens_of_micro_batch(t));
    const double elements = 2.0 * static_cast<double>(all[b].parameters) + activations;
    most = std::max(most, elements * static_cast<double>(size_of(t.type)));
  }
  return most;
}

/// The most bytes of contents that a later step needs.
[[nodiscard]] byte_count most_alive(const forebay::plan::trace& t) {
  std::vector<bool> alive(t.item_bytes.size(), true);
  std::vector<bool> seen(t.item_bytes.size(), false);
  for (const forebay::plan::trace_step& s : t.steps) {
    for (const forebay::plan::item_access& a : s.accesses) {
      alive[a.item] = seen[a.item] ? alive[a.item] : forebay::needs_contents(a.how);
      seen[a.item] = true;
    }
  }
  byte_count now = 0;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    now += alive[i] ? t.item_bytes[i] : 0;
  }
  byte_count most = now;
  for (const forebay::plan::trace_step& s : t.steps) {
    byte_count freed = 0;
    for (const forebay::plan::item_access& a : s.accesses) {
      now += has(a.how, uses::create) && !alive[a.item] ? t.item_bytes[a.item] : 0;
      freed += has(a.how, uses::free) ? t.item_bytes[a.item] : 0;
      alive[a.item] = !has(a.how, uses::free);
    }
    most = std::max(most, now);
    now -= freed;
  }
  return most;
}

void find_shortages(const question& q, prediction& p) {
  const auto check = [&](const char* tier, const forebay::plan::tier_need& need, byte_count has) {
    if (need.bytes > has) {
      p.shortages.push_back({tier, p.work.step_names.at(need.step.value_or(0)), need.bytes, has});
    }
  };
  const forebay::plan::machine& m = q.on.model;
  check("device", p.needs.device, m.device_capacity);
  check("host", p.needs.host, m.host_capacity);
  if (m.storage.empty() && p.most_alive > m.device_capacity + m.host_capacity) {
    p.shortages.push_back({"device and host", "all that is needed at once, there being no drive", p.most_alive,
                           m.device_capacity + m.host_capacity});
  }
}

}  // namespace

granularity choose_granularity(const question& q) {
  const forebay::plan::machine& m = q.on.model;
  granularity g;
  g.device_part = part_of(std::min(m.device_capacity, m.host_capacity));
  g.host_part = part_of(q.what.update == place::host ? m.host_capacity : std::min(m.device_capacity, m.host_capacity));
  g.half_layers = q.what.again == recompute::all ? 2 : 1;  // a layer is recomputed as one
  while (accesses_of(q.what, g) > many_accesses && g.half_layers < 2 * q.what.model.layers) {
    granularity coarser = g;
    coarser.half_layers *= 2;
    if (largest_step(q.what, coarser) > largest_group * static_cast<double>(m.device_capacity)) {
      break;
    }
    g = coarser;
  }
  return g;
}

prediction predict(const question& q) {
  prediction p;
  if (q.order) {
    p.work = as_recorded(*q.order);
  } else {
    p.cut = choose_granularity(q);
    p.work = build_workload(q.what, q.on.speed, p.cut);
  }
  p.needs = forebay::plan::minimum_capacity(p.work.trace, 0);
  p.most_alive = most_alive(p.work.trace);
  find_shortages(q, p);
  if (!p.shortages.empty()) {
    return p;
  }
  forebay::plan::planner_options options;
  options.effort = q.effort;
  if (!q.order && q.what.clip) {
    options.execution.joining_phases = {"update"};
  }
  p.bound = find_least_time(p.work.trace, q.on.model, options.execution);
  options.known_bound = p.bound.seconds;
  try {
    p.plan = forebay::plan::plan_iteration(p.work.trace, q.on.model, options);
  } catch (const forebay::capacity_error& e) {
    p.obstacle = e.what();
  }
  return p;
}

double tokens_per_second(const question& q, const prediction& p) {
  return static_cast<double>(tokens_of_iteration(q.what)) / p.seconds();
}

double model_flops_utilisation(const question& q, const prediction& p) {
  return training_flops(q.what.model) * tokens_per_second(q, p) / q.on.peak_flops;
}

}  // namespace plan_model
