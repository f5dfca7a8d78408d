#include <forebay/plan/machine.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

void check_rate(double rate, std::string_view name) {
  if (!(rate > 0.0)) {  // refuses NaN too
    throw usage_error(fmt::format("the machine's {} is {} bytes per second; it must be above zero", name, rate));
  }
}

void check_mixes(const machine& m, std::size_t path) {
  const std::vector<mixed_rate>& mixes = m.storage[path].mixes;
  for (std::size_t i = 0; i < mixes.size(); ++i) {
    const std::string name = fmt::format("storage[{}].mixes[{}]", path, i);
    if (!(mixes[i].read_share > 0.0 && mixes[i].read_share < 1.0)) {
      throw usage_error(
          fmt::format("the machine's {}.read_share is {}; it must be above 0 and below 1", name, mixes[i].read_share));
    }
    check_rate(mixes[i].total_rate, name + ".total_rate");
  }
  if (!mixes.empty() && !m.half_duplex_storage) {
    throw usage_error(
        fmt::format("the machine's storage[{}].mixes count only with half_duplex_storage, which is off", path));
  }
}

/// A pair of rates that a path reaches at once.
struct operating_point {
  double read;
  double write;
};

std::size_t point_count(const machine& m, const storage_link& path) {
  return m.half_duplex_storage ? 2 + path.mixes.size() : 1;
}

operating_point point(const machine& m, const storage_link& path, std::size_t i) {
  if (!m.half_duplex_storage) {
    return {path.read_rate, path.write_rate};
  }
  if (i < 2) {
    return i == 0 ? operating_point{path.read_rate, 0.0} : operating_point{0.0, path.write_rate};
  }
  const mixed_rate& mix = path.mixes[i - 2];
  return {mix.read_share * mix.total_rate, (1.0 - mix.read_share) * mix.total_rate};
}

/// Also where the rate is unlimited and the price zero.
double worth(double price, double rate) { return price > 0.0 ? price * rate : 0.0; }

/// What all paths together earn in a second at these prices of a byte read and a byte written.
double earnings(const machine& m, double read_price, double write_price) {
  double sum = 0.0;
  for (const storage_link& path : m.storage) {
    double best = 0.0;
    for (std::size_t i = 0; i < point_count(m, path); ++i) {
      const operating_point p = point(m, path, i);
      best = std::max(best, worth(read_price, p.read) + worth(write_price, p.write));
    }
    sum += best;
  }
  return sum;
}

// Path p spends the time u_pi at its operating point i. The least t with sum_i u_pi <= t, all reads together R and all
// writes W is a linear program. By duality
//   t = max over a, b >= 0 of (a R + b W) / sum_p max_i (a read_pi + b write_pi),
// and since the denominator is piecewise linear the maximum lies at a or b = 0 or where two points of some path earn
// the same. Called for every window of a bound: no allocation.
double least_seconds(const machine& m, double read, double written) {
  double longest = 0.0;
  const auto try_prices = [&](double a, double b) {
    const double earned = earnings(m, a, b);
    longest = std::max(longest, earned > 0.0 ? (a * read + b * written) / earned : 0.0);
  };
  try_prices(1.0, 0.0);
  try_prices(0.0, 1.0);
  for (const storage_link& path : m.storage) {
    for (std::size_t i = 0; i < point_count(m, path); ++i) {
      for (std::size_t k = 0; k < point_count(m, path); ++k) {
        const operating_point reads = point(m, path, i);
        const operating_point writes = point(m, path, k);
        // An unlimited rate gives a price of zero, which was tried.
        if (reads.read > writes.read && reads.write < writes.write && reads.read < unlimited_rate &&
            writes.write < unlimited_rate) {
          try_prices(1.0 / (reads.read - writes.read), 1.0 / (writes.write - reads.write));
        }
      }
    }
  }
  return longest;
}

}  // namespace

void validate(const machine& m) {
  check_rate(m.h2d_rate, "h2d_rate");
  check_rate(m.d2h_rate, "d2h_rate");
  for (std::size_t i = 0; i < m.storage.size(); ++i) {
    check_rate(m.storage[i].read_rate, fmt::format("storage[{}].read_rate", i));
    check_rate(m.storage[i].write_rate, fmt::format("storage[{}].write_rate", i));
    check_mixes(m, i);
  }
}

double storage_read_rate(const machine& m) { return m.storage.empty() ? unlimited_rate : earnings(m, 1.0, 0.0); }

double storage_write_rate(const machine& m) { return m.storage.empty() ? unlimited_rate : earnings(m, 0.0, 1.0); }

double least_storage_seconds(const machine& m, byte_count read, byte_count written) {
  return least_seconds(m, static_cast<double>(read), static_cast<double>(written));
}

double storage_rate(const machine& m, double read_share) {
  FOREBAY_EXPECTS(read_share >= 0.0 && read_share <= 1.0, "a share is from 0 to 1");
  const double per_byte = least_seconds(m, read_share, 1.0 - read_share);
  return per_byte > 0.0 ? 1.0 / per_byte : unlimited_rate;
}

}  // namespace forebay::plan
