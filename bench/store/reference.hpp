#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "measure.hpp"
#include "plain_ring.hpp"
#include "settings.hpp"
#include "workload.hpp"

namespace forebay::store_bench {

/// The bare ring at its best: per mode the block and depth that were fastest in a short sweep.
class reference {
 public:
  /// \throws std::runtime_error where the kernel refuses io_uring.
  reference(const settings& s, std::span<std::byte> memory);

  /// Writes the files once, then finds the best shape of each mode, trying all of them in turn, three times.
  void tune();
  [[nodiscard]] cost run(const workload& w, std::uint64_t seed);
  [[nodiscard]] const ring_shape& shape(mode m) const { return best_.at(m); }
  [[nodiscard]] bool direct() const { return ring_.direct(); }

 private:
  [[nodiscard]] cost run(const workload& w, const ring_shape& shape, std::uint64_t seed);

  byte_count total_;
  double read_share_;
  plain_ring ring_;
  std::map<mode, ring_shape> best_;
};

}  // namespace forebay::store_bench
