#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/device_update.hpp>

namespace forebay {

struct adamw_options {
  float lr = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0.01F;  ///< decoupled; per parameter switch in adamw_parameter
  float clip_norm = 0.0F;      ///< largest global gradient norm; 0: no clipping
  byte_count subgroup_bytes =
      16_MiB;            ///< of parameter, gradient, m and v together, at most, where tensors are that small
  unsigned threads = 0;  ///< of the update's TBB arena; 0: all usable CPUs. Never changes a bit of the result
  enum class location : std::uint8_t { automatic, host, device };
  location where = location::automatic;  ///< automatic: on the device's stream when all tensors fit there
  double device_share = 1.0;  ///< of the subgroups, by number: those that run on the device when `where` says device
  device_update* kernels = nullptr;  ///< for a device whose memory the host can't address; outlives the optimizer
};

struct adamw_parameter {
  tensor_id parameter;  ///< fp32: its own master
  tensor_id gradient;   ///< fp32, same shape
  bool decay = true;
};

struct update_report {
  std::uint64_t step = 0;         ///< updates applied so far, this one included
  bool skipped = false;           ///< a gradient was not finite: nothing was changed
  std::string non_finite_tensor;  ///< the first such gradient's name, in registration order
  double gradient_norm = 0.0;     ///< global, before clipping
  float clip_scale = 1.0F;        ///< what gradients were multiplied by
};

/// AdamW (Loshchilov and Hutter, 2019) streamed over subgroups: each subgroup's states come from storage, are updated
/// and go back while the next ones are on their way. A user of the engine like any other: its work is steps of the
/// order.
class adamw {
 public:
  /// Registers m and v (zero) for each parameter. \throws usage_error on a dtype other than fp32 or unequal shapes.
  adamw(engine& owner, std::vector<adamw_parameter> parameters, adamw_options options = {});
  ~adamw();
  adamw(adamw&&) noexcept;
  adamw& operator=(adamw&&) noexcept;

  /// Appends the update's steps to an order: norm 0, 1, ... in the order of registration, then update ..., 1, 0, which
  /// free the gradients. They run on the host or on the device; where that is `automatic`, it is decided here, by the
  /// capacity of this engine's device tier: to find a smaller one by `minimum_capacity`, fix the place. Without a call,
  /// `update` describes its steps to the iteration, as a recorded order needs.
  void append_to(order& steps);
  /// Runs them. The gradients of the iteration must be complete (their steps acquired).
  update_report update(iteration& in);

  [[nodiscard]] tensor_id first_moment(tensor_id parameter) const;
  [[nodiscard]] tensor_id second_moment(tensor_id parameter) const;
  /// How many updates were applied.
  [[nodiscard]] std::uint64_t step() const noexcept;
  /// Continues the count after a resume: bias correction depends on it.
  void set_step(std::uint64_t step) noexcept;
  void set_lr(float lr) noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace forebay
