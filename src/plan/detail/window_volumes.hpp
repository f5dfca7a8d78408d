#pragma once

#include <cstdint>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

#include "plan/detail/instants.hpp"
#include "plan/detail/interval_packing.hpp"

namespace forebay::plan::detail {

/// What the links must move between two instants, as packing problems: see window_volumes.cpp for the proofs.
struct window_problems {
  packing_problem h2d;
  packing_problem d2h;
  packing_problem storage_read;
  packing_problem storage_written;
};

/// Poses those problems for windows of one layout of a trace.
class window_volumes {
 public:
  window_volumes(const trace& t, const machine& capacities, instants layout);

  [[nodiscard]] const instants& layout() const noexcept { return in_; }
  /// For the window from instant `from` to instant `to`, which leaves one iteration of the layout on both sides.
  [[nodiscard]] window_problems problems(std::int32_t from, std::int32_t to) const;
  [[nodiscard]] link_volume volumes(std::int32_t from, std::int32_t to) const;
  /// In the long run, per iteration; the layout has at least four iterations.
  [[nodiscard]] link_volume per_iteration() const;

 private:
  struct visit {
    std::int32_t step;
    uses how;
    place where;
  };
  using visits = std::vector<visit>;
  struct window {
    std::int32_t from;
    std::int32_t to;
  };

  [[nodiscard]] std::int32_t own(const visit& v) const { return in_.own[static_cast<std::size_t>(v.step)]; }
  [[nodiscard]] std::int32_t after(const visit& v) const { return in_.after[static_cast<std::size_t>(v.step)]; }
  [[nodiscard]] std::int32_t before(const visit& v) const { return in_.before[static_cast<std::size_t>(v.step)]; }

  void add_h2d(packing_problem& p, window w, const visits& all, byte_count bytes) const;
  void add_d2h(packing_problem& p, window w, const visits& all, byte_count bytes) const;
  void add_storage_reads(packing_problem& p, window w, const visits& all, byte_count bytes) const;
  void add_storage_writes(packing_problem& p, window w, const visits& all, byte_count bytes) const;
  void give_back(packing_problem& p, window w, const visits& all, std::size_t of, interval kept,
                 bool device_only) const;

  const trace* trace_;
  bool stored_;
  byte_count device_capacity_;
  byte_count both_capacity_;
  instants in_;
  std::vector<visits> by_item_;
  std::vector<byte_count> device_use_;  // by instant of one iteration: of the device step there, workspace included
  std::vector<byte_count> both_use_;
};

}  // namespace forebay::plan::detail
