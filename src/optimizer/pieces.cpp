#include <algorithm>

#include <forebay/optimizer/detail/pieces.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

namespace forebay::detail {

namespace {

/// Elements of one task: 256 KiB of parameter, gradient, m and v, about one core's second-level cache at most, and long
/// enough (some ten microseconds) that handing it out costs nothing. A multiple of a cache line and of a leaf.
inline constexpr std::size_t piece_elements = 4 * norm_leaf_elements;

struct piece {
  std::size_t item;
  std::size_t first;  ///< element
  std::size_t count;  ///< elements
};

template <typename Items>
std::vector<piece> cut(const Items& items) {
  std::vector<piece> pieces;
  for (std::size_t k = 0; k < items.size(); ++k) {
    const std::size_t size = items[k].gradient.size();
    for (std::size_t first = 0; first < size; first += piece_elements) {
      pieces.push_back({k, first, std::min(piece_elements, size - first)});
    }
  }
  return pieces;
}

}  // namespace

void update_all(const std::vector<update_item>& items, update_pool& pool) {
  const std::vector<piece> pieces = cut(items);
  pool.for_each(pieces.size(), [&](std::size_t i) {
    const piece& part = pieces[i];
    const update_item& item = items[part.item];
    adamw_update(item.parameter.subspan(part.first, part.count), item.gradient.subspan(part.first, part.count),
                 item.m.subspan(part.first, part.count), item.v.subspan(part.first, part.count), *item.coefficients);
  });
}

void norm_all(const std::vector<norm_item>& items, update_pool& pool) {
  std::vector<std::size_t> first_leaf(items.size() + 1, 0);
  for (std::size_t k = 0; k < items.size(); ++k) {
    first_leaf[k + 1] = first_leaf[k] + norm_leaves(items[k].gradient.size());
  }
  std::vector<double> leaves(first_leaf.back());
  const std::vector<piece> pieces = cut(items);
  pool.for_each(pieces.size(), [&](std::size_t i) {
    const piece& part = pieces[i];
    const std::span<const float> gradient = items[part.item].gradient.subspan(part.first, part.count);
    double* const out = leaves.data() + first_leaf[part.item] + part.first / norm_leaf_elements;
    for (std::size_t k = 0; k < norm_leaves(gradient.size()); ++k) {
      const std::size_t from = k * norm_leaf_elements;
      out[k] = leaf_sum_of_squares(gradient.subspan(from, std::min(norm_leaf_elements, gradient.size() - from)));
    }
  });
  for (std::size_t k = 0; k < items.size(); ++k) {
    *items[k].sum = tree_sum(std::span(leaves).subspan(first_leaf[k], first_leaf[k + 1] - first_leaf[k]));
  }
}

}  // namespace forebay::detail
