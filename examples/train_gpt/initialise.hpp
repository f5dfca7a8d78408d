#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tensors.hpp"

namespace train_gpt {

/// Gives the parameters' first values, piece by piece: `put(tensor, values, element offset)`. A value depends on the
/// seed, the tensor's name and the element's index only, so no run needs more memory than a piece.
void initialise_parameters(
    const tensor_table& tensors, std::uint64_t seed,
    const std::function<void(tensor_index tensor, std::span<const float> values, std::size_t offset)>& put);

}  // namespace train_gpt
