#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <forebay/optimizer/adamw_kernel.hpp>
#include <forebay/optimizer/detail/update_pool.hpp>

/// The work of one subgroup, cut into pieces that depend on the tensors' sizes alone: never on threads or subgroups.
namespace forebay::detail {

/// A tensor of an update as a lease gave it, with the coefficients that apply to it.
struct update_item {
  std::span<float> parameter;
  std::span<const float> gradient;
  std::span<float> m;
  std::span<float> v;
  const adamw_coefficients* coefficients = nullptr;
};

/// A gradient, and where its sum of squares goes.
struct norm_item {
  std::span<const float> gradient;
  double* sum = nullptr;
};

/// Updates all items.
void update_all(const std::vector<update_item>& items, update_pool& pool);

/// Writes each item's `sum_of_squares`, the leaves computed in parallel.
void norm_all(const std::vector<norm_item>& items, update_pool& pool);

}  // namespace forebay::detail
