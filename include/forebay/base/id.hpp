#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace forebay {

/// A strong index into a table: ids of different tags do not mix. `generation` tells a reused slot from the first one,
/// and an id of one owner from that of another.
template <typename Tag>
struct id {
  static constexpr std::uint32_t invalid_index = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t index = invalid_index;
  std::uint32_t generation = 0;

  [[nodiscard]] constexpr bool valid() const noexcept { return index != invalid_index; }
  friend constexpr auto operator<=>(const id&, const id&) = default;
};

using tensor_id = id<struct tensor_tag>;
using block_id = id<struct block_tag>;
using step_id = id<struct step_tag>;

}  // namespace forebay

template <typename Tag>
struct std::hash<forebay::id<Tag>> {
  std::size_t operator()(const forebay::id<Tag>& value) const noexcept {
    return std::hash<std::uint64_t>{}((std::uint64_t{value.generation} << 32U) | value.index);
  }
};
