#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/adamw.hpp>

namespace forebay::detail {

/// A parameter with all that its update needs.
struct adamw_entry {
  tensor_id parameter;
  tensor_id gradient;
  tensor_id m;
  tensor_id v;
  bool decay = true;
  byte_count bytes = 0;    ///< of the four together
  std::size_t leaves = 0;  ///< of the gradient's norm
  std::string gradient_name;
};

/// A step of the update: how to describe it and, once it is in an order, which step it is there.
struct subgroup_step {
  std::string name;
  std::vector<access> accesses;
  step_options options;
  step_id id;
};

/// A contiguous run of entries, and its three steps. `discard` frees the gradients of a skipped update; it is never
/// part of an order.
struct subgroup {
  std::size_t first = 0;
  std::size_t count = 0;
  place where = place::host;
  subgroup_step norm;
  subgroup_step update;
  subgroup_step discard;
};

/// Checks the parameters against the engine, then registers m and v, zero, for each. Changes nothing when it throws
/// usage_error.
[[nodiscard]] std::vector<adamw_entry> register_states(engine& owner, const std::vector<adamw_parameter>& parameters);

/// \throws usage_error naming the option that is out of range.
void check_options(const adamw_options& options);

/// How the steps of an update are made.
struct subgroup_options {
  byte_count limit = 0;        ///< of an entry's tensors together
  double device_share = 0.0;   ///< of the subgroups, spread evenly over them: those whose steps run on the device
  bool device_leaves = false;  ///< norm steps there leave the leaves' sums in a workspace
};

/// Runs of entries of at most `limit` bytes together; an entry larger than that is a run of its own.
[[nodiscard]] std::vector<subgroup> make_subgroups(const std::vector<adamw_entry>& entries,
                                                   const subgroup_options& options);

/// Whether all of the engine's tensors and the largest workspace of the order fit its device tier at once.
[[nodiscard]] bool fits_device(engine& owner, const order& steps);

}  // namespace forebay::detail
