#pragma once

#include <cstdint>
#include <vector>

#include <forebay/engine/engine.hpp>

namespace forebay::campaign {

using byte_vector = std::vector<std::uint8_t>;

/// The workload `layers`: a forward and a backward pass over six layers with weights and moments of odd sizes, an
/// activation per layer that is created on the way forth and freed on the way back, and an update on the host. About
/// 0.6 MiB in 16 KiB chunks, three iterations. Everything that a step sees depends on all bytes that it reads.
class layers {
 public:
  static constexpr std::uint64_t iterations = 3;

  /// Adds the tensors to the engine and returns the order of the steps.
  [[nodiscard]] order declare(engine& e);

  /// Gives the persistent tensors their first contents and iterates. Throws what the engine throws.
  void run(engine& e);

  /// Whether `run` ended inside of an iteration: what fails there fails the engine.
  [[nodiscard]] bool stopped_in_iteration() const { return iterating_; }

  /// What is different from the same program on plain vectors: steps that saw something else, tensors that hold
  /// something else. Reads every tensor. Empty: nothing.
  [[nodiscard]] std::string difference(engine& e) const;

  /// All tensors together, padding excluded.
  [[nodiscard]] static byte_count bytes();

 private:
  std::vector<order_step> steps_;
  std::vector<tensor_id> ids_;
  std::vector<std::uint64_t> seen_;
  bool iterating_ = false;
};

}  // namespace forebay::campaign
