#include <forebay/plan/planner.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <random>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "plan/detail/coarsening.hpp"
#include "plan/detail/order_search.hpp"
#include "plan/detail/plan_search.hpp"
#include <cstdlib>

namespace forebay::plan {
namespace {

}  // namespace

planned plan_iteration(const trace& t, const machine& m, const planner_options& options) {
  validate(m);
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      if (a.item >= t.item_bytes.size()) {
        throw usage_error(fmt::format("step {} accesses item {}; there are {}", s, a.item, t.item_bytes.size()));
      }
    }
  }
  if (t.steps.empty()) {
    return {};
  }
  const double W = getenv("WORK") ? atof(getenv("WORK")) : 5e5;
  const auto affordable = [&](const detail::plan_search& x, double work) {
    return static_cast<std::uint32_t>(std::clamp(work / static_cast<double>(x.lists().all.size() + 1), 2.0, 4000.0));
  };
  std::optional<detail::coarse_trace> coarse = detail::coarsen(t, ~std::size_t{0});
  detail::plan_search plain(t, m, options);
  detail::plan_search from_coarse(t, m, options);
  double work = W;
  if (coarse && !getenv("NOC")) {
    detail::plan_search c(coarse->joined, m, options);
    const std::uint32_t tries = affordable(c, 0.3 * W);
    c.sweep(std::min(tries / 2, 160U));
    c.vary(tries > c.result().candidates ? tries - c.result().candidates : 0);
    work -= 0.3 * W;
    if (c.found()) {
      from_coarse.start_from(c, coarse->joined_of);
      if (from_coarse.found()) {
        const auto n = affordable(plain, 0.2 * W);
        from_coarse.sweep(n/2);
        from_coarse.vary(n/2);
        work -= 0.2 * W;
      }
    }
  }
  if (!from_coarse.enough()) {
    const auto n = affordable(plain, 0.2 * W);
    plain.sweep(std::min(n, 160U));
    plain.vary(n > plain.result().candidates ? n - plain.result().candidates : 0);
    work -= 0.2 * W;
  }
  detail::plan_search& s = from_coarse.found() && (!plain.found() || from_coarse.result().predicted.period < plain.result().predicted.period) ? from_coarse : plain;
  s.vary(affordable(s, work));
  planned result = s.result();
  if (s.found()) {
  const double SW = getenv("SAW") ? atof(getenv("SAW")) : 2.5e6;
  detail::order_search_limits limits{static_cast<std::uint32_t>(std::min(SW/static_cast<double>(result.steady.operations.size()), 20000.0)), options.close_enough * options.known_bound};
  result = detail::improve_order(t, m, options, std::move(result), limits);
  }
  if (!s.found()) {
    throw capacity_error(fmt::format("no schedule found: {} steps in {} bytes on the device and {} on the host",
                                     t.steps.size(), m.device_capacity, m.host_capacity));
  }
  return result;
}

}  // namespace forebay::plan
