#include <forebay/store/detail/path_shares.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <forebay/base/contract.hpp>

namespace forebay::store_detail {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

void normalise(std::vector<double>& values) {
  const double all = sum(values);
  for (double& value : values) {
    value /= all;
  }
}

void keep_least_share(std::vector<double>& values) {
  const double least = std::min(least_share, 0.25 / static_cast<double>(values.size()));
  for (double& value : values) {
    value = std::max(value, least);
  }
  normalise(values);
}

}  // namespace

path_weights::path_weights(std::vector<double> given) {
  if (std::all_of(given.begin(), given.end(), [](double weight) { return weight == 0; })) {
    std::fill(given.begin(), given.end(), 1.0);
  }
  values_.resize(given.size());
  set(std::move(given));
}

void path_weights::set(std::vector<double> given) {
  FOREBAY_EXPECTS(given.size() == values_.size(), "there is one weight per storage path");
  FOREBAY_EXPECTS(std::all_of(given.begin(), given.end(), [](double weight) { return weight >= 0; }) && sum(given) > 0,
                  "the weights of storage paths are not negative, and one is positive");
  normalise(given);
  keep_least_share(given);
  values_ = std::move(given);
}

double rate_under_mix(const measured_rate& rate, double bytes_read, double bytes_written) noexcept {
  const double read = rate.read > 0 ? rate.read : rate.write;
  const double write = rate.write > 0 ? rate.write : rate.read;
  const double bytes = bytes_read + bytes_written;
  return read > 0 && bytes > 0 ? bytes / (bytes_read / read + bytes_written / write) : 0;
}

void path_weights::observe(std::span<const measured_rate> rates) {
  double bytes_read = 0;
  double bytes_written = 0;
  for (const measured_rate& rate : rates) {
    bytes_read += rate.bytes_read;
    bytes_written += rate.bytes_written;
  }
  std::vector<double> wanted;
  double known_rate = 0;
  double known_weight = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    wanted.push_back(rate_under_mix(rates[i], bytes_read, bytes_written));
    if (wanted[i] > 0) {
      known_rate += wanted[i];
      known_weight += values_[i];
    }
  }
  if (known_rate <= 0) {
    return;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] <= 0) {
      wanted[i] = values_[i] * known_rate / known_weight;
    }
  }
  normalise(wanted);
  keep_least_share(wanted);
  double slowest = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    slowest = std::max(slowest, values_[i] / wanted[i]);
  }
  if (slowest > 1 + worth_adapting) {
    values_ = std::move(wanted);
  }
}

std::vector<double> bounded_shares(const std::vector<double>& weights, const std::vector<byte_count>& capacities,
                                   byte_count need) {
  std::vector<double> shares(weights.size(), 0);
  std::vector<bool> bounded(weights.size(), false);
  double rest = 1;  // what the unbounded paths share
  double weight = sum(weights);
  for (bool changed = true; changed && weight > 0 && rest > 0;) {
    changed = false;
    const double scale = rest / weight;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (bounded[i] || weights[i] <= 0) {
        continue;
      }
      const double most = need == 0 ? 1.0 : static_cast<double>(capacities[i]) / static_cast<double>(need);
      shares[i] = weights[i] * scale;
      if (shares[i] > most) {
        shares[i] = most;
        bounded[i] = true;
        rest -= most;
        weight -= weights[i];
        changed = true;
      }
    }
  }
  const double all = sum(shares);
  if (all > 0 && rest > 0) {  // more than there is room for, or rounding
    normalise(shares);
  }
  return shares;
}

share_dealer::share_dealer(std::size_t paths, byte_count coarsest, byte_count finest)
    : coarsest_(static_cast<double>(coarsest)), finest_(static_cast<double>(finest)), credits_(paths, 0.0) {}

std::vector<std::uint32_t> share_dealer::deal(const std::vector<byte_count>& pieces,
                                              const std::vector<double>& shares) const {
  std::vector<double> credits = credits_;
  std::vector<std::uint32_t> paths;
  paths.reserve(pieces.size());
  for (const byte_count piece : pieces) {
    const auto bytes = static_cast<double>(piece);
    std::size_t chosen = shares.size();
    for (std::size_t i = 0; i < shares.size(); ++i) {
      credits[i] += shares[i] * bytes;
      if (shares[i] > 0 && (chosen == shares.size() || credits[i] > credits[chosen] + finest_ / 2)) {
        chosen = i;
      }
    }
    credits[chosen] -= bytes;
    paths.push_back(static_cast<std::uint32_t>(chosen));
  }
  return paths;
}

std::vector<double> share_dealer::after(const std::vector<byte_count>& bytes, const std::vector<double>& shares) const {
  const auto all = static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), byte_count{0}));
  std::vector<double> credits = credits_;
  for (std::size_t i = 0; i < credits.size(); ++i) {
    credits[i] += shares[i] * all - static_cast<double>(bytes[i]);
  }
  return credits;
}

bool share_dealer::fits(const std::vector<byte_count>& bytes, const std::vector<double>& shares) const {
  const std::vector<double> credits = after(bytes, shares);
  return std::all_of(credits.begin(), credits.end(), [&](double c) { return c > -coarsest_ + 1; });
}

void share_dealer::note(const std::vector<byte_count>& bytes, const std::vector<double>& shares) {
  credits_ = after(bytes, shares);
  // Where room or a retired path decided instead of the shares, the debt is forgiven: later pages owe nothing for it.
  for (double& credit : credits_) {
    credit = std::clamp(credit, -coarsest_, coarsest_);
  }
  const double mean = sum(credits_) / static_cast<double>(credits_.size());
  for (double& credit : credits_) {
    credit -= mean;
  }
}

}  // namespace forebay::store_detail
