#include <forebay/plan/machine.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

void check_rate(double rate, std::string_view name) {
  if (!(rate > 0.0)) {  // refuses NaN too
    throw usage_error(fmt::format("the machine's {} is {} bytes per second; it must be above zero", name, rate));
  }
}

}  // namespace

void validate(const machine& m) {
  check_rate(m.h2d_rate, "h2d_rate");
  check_rate(m.d2h_rate, "d2h_rate");
  for (std::size_t i = 0; i < m.storage.size(); ++i) {
    check_rate(m.storage[i].read_rate, fmt::format("storage[{}].read_rate", i));
    check_rate(m.storage[i].write_rate, fmt::format("storage[{}].write_rate", i));
  }
}

double storage_read_rate(const machine& m) {
  double rate = m.storage.empty() ? unlimited_rate : 0.0;
  for (const storage_link& path : m.storage) {
    rate += path.read_rate;
  }
  return rate;
}

double storage_write_rate(const machine& m) {
  double rate = m.storage.empty() ? unlimited_rate : 0.0;
  for (const storage_link& path : m.storage) {
    rate += path.write_rate;
  }
  return rate;
}

// With separate directions each is a resource of its own. With half-duplex paths it is a linear program: the least t
// for which path p reads x_p and writes y_p with x_p / r_p + y_p / w_p <= t, all x together R and all y W. By duality
//   t = max over a, b >= 0 of (a R + b W) / sum_p max(a r_p, b w_p),
// and since the denominator is piecewise linear the maximum lies at a or b = 0 or where a r_p = b w_p for some path.
double least_storage_seconds(const machine& m, byte_count read, byte_count written) {
  const auto r = static_cast<double>(read);
  const auto w = static_cast<double>(written);
  double seconds = std::max(r / storage_read_rate(m), w / storage_write_rate(m));
  if (!m.half_duplex_storage) {
    return seconds;
  }
  for (const storage_link& at : m.storage) {
    const double a = 1.0 / at.read_rate;
    const double b = 1.0 / at.write_rate;
    double denominator = 0.0;
    for (const storage_link& path : m.storage) {
      // The path's own terms are 1 by construction, also where its rate is unlimited (a price of 0 times infinity).
      const double reads = a > 0.0 ? a * path.read_rate : (path.read_rate == unlimited_rate ? 1.0 : 0.0);
      const double writes = b > 0.0 ? b * path.write_rate : (path.write_rate == unlimited_rate ? 1.0 : 0.0);
      denominator += std::max(reads, writes);
    }
    seconds = std::max(seconds, (a * r + b * w) / denominator);
  }
  return seconds;
}

}  // namespace forebay::plan
