#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/store/detail/rate_meter.hpp>

namespace forebay::store_detail {

/// Every path keeps at least about this part of the load, so that one that has become fast again is found out.
inline constexpr double least_share = 1.0 / 128;
/// New weights are taken over when the old ones would make the slowest path end this much later.
inline constexpr double worth_adapting = 0.02;

/// How the paths share the load, as fractions of 1. Not thread-safe.
class path_weights {
 public:
  /// `given`: relative, one per path; all 0: equal.
  explicit path_weights(std::vector<double> given);

  /// Takes over what the rates ask under their common mix of reads and writes, when it is worth it. A path of unknown
  /// rate keeps its standing among the others.
  void observe(std::span<const measured_rate> rates);
  /// \throws usage_error when there is not one weight >= 0 per path, or none is above 0.
  void set(std::vector<double> given);
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }

 private:
  std::vector<double> values_;
};

/// Bytes per second of a path under a mix of reads and writes (bytes of each); 0 when its rates are unknown.
[[nodiscard]] double rate_under_mix(const measured_rate& rate, double bytes_read, double bytes_written) noexcept;

/// Shares (fractions of 1) of `need` bytes in proportion to the weights, but none above its capacity where the others
/// can take what is over. Paths of weight 0 get none. All 0 when there is no room at all.
[[nodiscard]] std::vector<double> bounded_shares(const std::vector<double>& weights,
                                                 const std::vector<byte_count>& capacities, byte_count need);

/// Deals pieces to paths in proportion to shares, over any run of pieces: each piece goes to the path that is furthest
/// behind, so that no path is ever more than one piece ahead of its share, over pages and inside them. With equal
/// shares that is round robin. Source: the smooth weighted round robin of L7 load balancers, with bytes for counts.
class share_dealer {
 public:
  /// `coarsest`: the largest piece. `finest`: credits that differ by less count as equal.
  share_dealer(std::size_t paths, byte_count coarsest, byte_count finest);

  /// A path per piece. `shares`: a path of share 0 gets none; at least one is above 0. Changes nothing.
  [[nodiscard]] std::vector<std::uint32_t> deal(const std::vector<byte_count>& pieces,
                                                const std::vector<double>& shares) const;
  /// True when, with these bytes written to the paths, none would be ahead by the largest piece or more.
  [[nodiscard]] bool fits(const std::vector<byte_count>& bytes, const std::vector<double>& shares) const;
  /// Notes that a page with these bytes on the paths is written next.
  void note(const std::vector<byte_count>& bytes, const std::vector<double>& shares);

 private:
  [[nodiscard]] std::vector<double> after(const std::vector<byte_count>& bytes,
                                          const std::vector<double>& shares) const;

  double coarsest_;
  double finest_;
  std::vector<double> credits_;  // bytes that a path is behind its share
};

}  // namespace forebay::store_detail
