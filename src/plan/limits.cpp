#include <forebay/plan/limits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

constexpr std::array all{improvement::compute,
                         improvement::cpu,
                         improvement::h2d,
                         improvement::d2h,
                         improvement::storage_read,
                         improvement::storage_write,
                         improvement::device_capacity,
                         improvement::host_capacity};
constexpr std::array factors{1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 8.0};
constexpr double worth_while = 0.98;

byte_count larger(byte_count bytes, double factor) {
  constexpr double most = 9e18;  // below the greatest byte_count
  return static_cast<byte_count>(std::min(most, static_cast<double>(bytes) * factor));
}

void quicken_steps(trace& t, place where, double factor) {
  for (trace_step& s : t.steps) {
    s.seconds /= s.where == where ? factor : 1.0;
  }
}

// What a byte of a mix takes is shared between the directions as its bytes are.
void quicken_storage(machine& m, double storage_link::*rate, double factor) {
  for (storage_link& path : m.storage) {
    path.*rate *= factor;
    for (mixed_rate& mix : path.mixes) {
      const double share = rate == &storage_link::read_rate ? mix.read_share : 1.0 - mix.read_share;
      mix.total_rate /= 1.0 - share + share / factor;
    }
  }
}

bool of_use(const trace& t, const machine& m, improvement what) {
  const auto any_step = [&](place where) {
    return std::any_of(t.steps.begin(), t.steps.end(),
                       [&](const trace_step& s) { return s.where == where && s.seconds > 0.0; });
  };
  switch (what) {
    case improvement::compute:
      return any_step(place::device);
    case improvement::cpu:
      return any_step(place::host);
    case improvement::h2d:
      return std::isfinite(m.h2d_rate);
    case improvement::d2h:
      return std::isfinite(m.d2h_rate);
    case improvement::storage_read:
    case improvement::storage_write:
      return !m.storage.empty();
    case improvement::device_capacity:
    case improvement::host_capacity:
      return true;
  }
  return true;
}

double bound_with(const trace& t, const machine& m, improvement what, double factor,
                  const bound_search_options& options) {
  const improved better = improve(t, m, what, factor);
  return find_bound(better.trace, better.machine, options).seconds;
}

limit limit_of(const trace& t, const machine& m, improvement what, double now, const bound_search_options& options) {
  limit result{what, bound_with(t, m, what, 2.0, options), 0.0};
  result.seconds_if_twice = std::min(now, result.seconds_if_twice);
  const bool twice_does = result.seconds_if_twice <= worth_while * now;
  for (const double factor : factors) {
    if (twice_does == (factor > 2.0)) {
      continue;  // known not to do it, or not to be the least
    }
    if (factor == 2.0 ? twice_does : bound_with(t, m, what, factor, options) <= worth_while * now) {
      result.matters_from = factor;
      break;
    }
  }
  return result;
}

}  // namespace

std::string_view to_string(improvement i) {
  constexpr std::array<std::string_view, 8> names{
      "compute", "cpu", "h2d", "d2h", "storage_read", "storage_write", "device_capacity", "host_capacity"};
  return names.at(static_cast<std::size_t>(i));
}

improved improve(const trace& t, const machine& m, improvement what, double factor) {
  if (!(factor >= 1.0) || !std::isfinite(factor)) {
    throw usage_error(
        fmt::format("{} can't become {} times as good: an improvement is by 1 or more", to_string(what), factor));
  }
  improved r{m, t};
  switch (what) {
    case improvement::compute:
      quicken_steps(r.trace, place::device, factor);
      break;
    case improvement::cpu:
      quicken_steps(r.trace, place::host, factor);
      break;
    case improvement::h2d:
      r.machine.h2d_rate *= factor;
      break;
    case improvement::d2h:
      r.machine.d2h_rate *= factor;
      break;
    case improvement::storage_read:
      quicken_storage(r.machine, &storage_link::read_rate, factor);
      break;
    case improvement::storage_write:
      quicken_storage(r.machine, &storage_link::write_rate, factor);
      break;
    case improvement::device_capacity:
      r.machine.device_capacity = larger(m.device_capacity, factor);
      break;
    case improvement::host_capacity:
      r.machine.host_capacity = larger(m.host_capacity, factor);
      break;
  }
  return r;
}

std::vector<limit> find_limits(const trace& t, const machine& m, double bound_seconds,
                               const bound_search_options& options) {
  std::vector<limit> limits;
  for (const improvement what : all) {
    if (of_use(t, m, what)) {
      limits.push_back(limit_of(t, m, what, bound_seconds, options));
    }
  }
  std::stable_sort(limits.begin(), limits.end(),
                   [](const limit& a, const limit& b) { return a.seconds_if_twice < b.seconds_if_twice; });
  return limits;
}

}  // namespace forebay::plan
