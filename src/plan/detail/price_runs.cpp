#include "plan/detail/price_runs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan::detail {
namespace {

/// Also where the price is zero and the share has no limit.
double part(double price, double share) { return price > 0.0 ? price * share : 0.0; }

/// The share of its full rate at which a direction moves in an operating point.
double share(double rate, double full) { return std::isinf(rate) && std::isinf(full) ? 1.0 : rate / full; }

double path_charge(const machine& m, std::size_t path, double read, double write) {
  if (!m.half_duplex_storage) {
    return read + write;
  }
  double most = std::max(read, write);
  for (const mixed_rate& mix : m.storage[path].mixes) {
    most = std::max(most, part(read, share(mix.read_share * mix.total_rate, m.storage[path].read_rate)) +
                              part(write, share((1.0 - mix.read_share) * mix.total_rate, m.storage[path].write_rate)));
  }
  return most;
}

price_run prices_at(const machine& m, const certificate& c, std::size_t k) {
  price_run r;
  r.first = static_cast<std::int64_t>(k);
  r.h2d = c.h2d[k] / m.h2d_rate;
  r.d2h = c.d2h[k] / m.d2h_rate;
  r.storage_read = r.storage_write = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < m.storage.size(); ++p) {
    r.storage_read = std::min(r.storage_read, c.storage_read[p][k] / m.storage[p].read_rate);
    r.storage_write = std::min(r.storage_write, c.storage_write[p][k] / m.storage[p].write_rate);
  }
  r.device = c.device[k];
  r.host = c.host[k];
  return r;
}

bool continues(const price_run& r, const price_run& next) {
  return next.device == 0.0 && next.host == 0.0 && next.h2d == r.h2d && next.d2h == r.d2h &&
         next.storage_read == r.storage_read && next.storage_write == r.storage_write;
}

void check_array(const std::string& name, const std::vector<double>& prices, std::size_t sub_slots) {
  if (prices.size() != sub_slots) {
    throw usage_error(
        fmt::format("the certificate's {} has {} prices; the trace has {} sub-slots", name, prices.size(), sub_slots));
  }
  for (std::size_t k = 0; k < prices.size(); ++k) {
    if (!(prices[k] >= 0.0) || !std::isfinite(prices[k])) {
      throw usage_error(
          fmt::format("the certificate's {}[{}] is {}; it must be finite, and zero or more", name, k, prices[k]));
    }
  }
}

void check_paths(const std::string& name, const std::vector<std::vector<double>>& paths, const machine& m,
                 std::size_t sub_slots) {
  if (paths.size() != m.storage.size()) {
    throw usage_error(
        fmt::format("the certificate's {} has {} paths; the machine has {}", name, paths.size(), m.storage.size()));
  }
  for (std::size_t p = 0; p < paths.size(); ++p) {
    check_array(fmt::format("{}[{}]", name, p), paths[p], sub_slots);
  }
}

}  // namespace

double charge(const machine& m, const certificate& c, std::size_t k) {
  double sum = c.h2d[k] + c.d2h[k] + c.cpu[k];
  for (std::size_t p = 0; p < m.storage.size(); ++p) {
    sum += path_charge(m, p, c.storage_read[p][k], c.storage_write[p][k]);
  }
  return sum;
}

std::vector<price_run> price_runs(const machine& m, const certificate& c) {
  std::vector<price_run> runs;
  for (std::size_t k = 0; k < c.h2d.size(); ++k) {
    const price_run next = prices_at(m, c, k);
    if (runs.empty() || !continues(runs.back(), next)) {
      runs.push_back(next);
    }
  }
  return runs;
}

void check_prices(const machine& m, const certificate& c, std::size_t sub_slots) {
  check_array("h2d", c.h2d, sub_slots);
  check_array("d2h", c.d2h, sub_slots);
  check_array("cpu", c.cpu, sub_slots);
  check_array("device", c.device, sub_slots);
  check_array("host", c.host, sub_slots);
  check_paths("storage_read", c.storage_read, m, sub_slots);
  check_paths("storage_write", c.storage_write, m, sub_slots);
  // What rounding adds to prices that were meant to add up to 1 is let through; check_certificate() divides by it.
  constexpr double limit = 1.0 + 1e-9;
  for (std::size_t k = 0; k < sub_slots; ++k) {
    const double sum = charge(m, c, k);
    if (!(k % 2 == 0 ? std::isfinite(sum) : sum <= limit)) {
      throw usage_error(fmt::format("the certificate's prices in sub-slot {} add up to {}; the limit is {}", k, sum,
                                    k % 2 == 0 ? "what is finite" : "1"));
    }
  }
}

}  // namespace forebay::plan::detail
