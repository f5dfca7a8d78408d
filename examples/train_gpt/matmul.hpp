#pragma once

#include <compare>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>

namespace train_gpt {

/// Where the elements of a matrix (or of a batch of them) lie, in elements from its first one.
struct layout {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;
  std::size_t batch_stride = 0;

  [[nodiscard]] layout transposed() const { return {columns, rows, column_stride, row_stride, batch_stride}; }
  friend auto operator<=>(const layout&, const layout&) = default;
};

/// Row-major without gaps.
[[nodiscard]] inline layout dense(std::size_t rows, std::size_t columns) {
  return {rows, columns, columns, 1, rows * columns};
}

/// c = a b, or c += a b, for each of `batch` matrices.
struct product {
  layout a;
  layout b;
  layout c;
  bool accumulate = false;
  std::size_t batch = 1;

  friend auto operator<=>(const product&, const product&) = default;
};

/// The one thing that the model takes from a matrix library. The bits of a product depend on its description and the
/// values, never on addresses (which are 64-byte aligned everywhere), and scratch memory is the caller's.
///
/// `float`: oneDNN. `double`: plain loops, the reference for tests.
template <typename T>
class matmul {
 public:
  matmul();
  ~matmul();
  matmul(const matmul&) = delete;
  matmul& operator=(const matmul&) = delete;

  /// The most scratch bytes that any of these products needs.
  [[nodiscard]] std::size_t scratch_bytes(std::initializer_list<product> products);
  /// Thread-safe; runs on the calling thread and its team. \throws std::logic_error when the scratch is too small.
  void operator()(const product& p, const T* a, const T* b, T* c, std::span<std::byte> scratch);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace train_gpt
