#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forebay/engine/recomputation.hpp>
#include <forebay/plan/order.hpp>
#include <forebay/plan/recompute.hpp>

namespace forebay::detail {

/// An order as it is run: with the steps that make activations again, and with what they make freed until then.
struct recomputed_order {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct given_up_tensor {
    std::uint32_t tensor = 0;
    std::uint32_t recomputation = 0;
  };

  order steps;
  std::vector<plan::recomputing_trace::source> sources;     ///< by step; `candidate` is the recomputation
  std::vector<std::uint32_t> position_of;                   ///< by step of the order as it was set
  std::vector<std::vector<given_up_tensor>> given_up;       ///< by step: whose contents end with it, to be made again
  std::vector<std::vector<std::uint32_t>> standing_before;  ///< by step: recomputations that end right before it
  std::vector<std::uint32_t> first_step;                    ///< by recomputation; `none`: it is not chosen
};

/// What a tensor is called in messages.
using tensor_namer = std::function<std::string(std::uint32_t)>;

/// `tensors`: how many there are. \throws usage_error naming the recomputation and the tensor, as plan::recompute does.
[[nodiscard]] recomputed_order recompute(const order& steps, const std::vector<recomputation>& again,
                                         const std::vector<bool>& chosen, std::size_t tensors,
                                         const tensor_namer& name);

/// The steps of all recomputations, one after the other, as they were declared.
[[nodiscard]] order steps_of(const std::vector<recomputation>& again);

}  // namespace forebay::detail
