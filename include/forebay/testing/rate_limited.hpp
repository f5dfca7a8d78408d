#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::testing {

/// Bytes per second of one path; 0: no limit.
struct path_limit {
  byte_count read = 0;
  byte_count write = 0;
  byte_count total = 0;  ///< of both together, as on a drive that does one or the other
};

/// Holds results back so that every path moves its bytes at the given rates, which may change while it runs: a drive
/// that slows down. Transfers of a path and direction follow one another; those already on their way keep their times.
/// Give it to `backend_options::faults`. Thread-safe.
class rate_limited final : public io::interceptor {
 public:
  /// One limit per path, in the order in which the backend is told its files. `inner`: not owned, does its part as
  /// well.
  explicit rate_limited(std::vector<path_limit> limits, io::interceptor* inner = nullptr);
  ~rate_limited() override;

  /// From now on. \throws usage_error when there is no such path.
  void change(std::size_t path, path_limit limit);

  int refuse(service wanted) noexcept override;
  void announced(std::span<const int> files) noexcept override;
  std::int64_t before(const transfer& t) noexcept override;
  std::int64_t after(const transfer& t, std::int64_t outcome) noexcept override;
  time_point hold_until(const transfer& t) noexcept override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace forebay::testing
