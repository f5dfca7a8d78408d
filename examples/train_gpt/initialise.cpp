#include "initialise.hpp"

#include <algorithm>
#include <vector>

#include "parallel.hpp"
#include "random.hpp"

namespace train_gpt {

void initialise_parameters(
    const tensor_table& tensors, std::uint64_t seed,
    const std::function<void(tensor_index tensor, std::span<const float> values, std::size_t offset)>& put) {
  constexpr std::size_t piece = std::size_t{1} << 18U;
  std::vector<float> values(piece);
  for (tensor_index t = 0; t < tensors.parameters().size(); ++t) {
    const initial_value initial = tensors.parameters()[t].initial;
    const std::uint64_t key = random_key(seed, tensors.specs()[t].name);
    const std::size_t elements = tensors.specs()[t].elements();
    for (std::size_t offset = 0; offset < elements; offset += piece) {
      const std::size_t count = std::min(piece, elements - offset);
      parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          const double deviate = initial.deviation == 0.0 ? 0.0 : random_normal(key, offset + i);
          values[i] = static_cast<float>(initial.mean + initial.deviation * deviate);
        }
      });
      put(t, std::span(values).first(count), offset);
    }
  }
  dismiss_compute_team();
}

}  // namespace train_gpt
