#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/id.hpp>

namespace forebay {

/// Where a step computes, and so in which tier its tensors must be while it runs.
enum class place : std::uint8_t { device, host };

/// What a step does to a tensor: a set of flags.
enum class uses : std::uint8_t {
  none = 0,
  read = 1,    ///< needs the contents
  write = 2,   ///< needs the contents and changes them
  create = 4,  ///< contents undefined before, defined after
  free = 8     ///< contents end with the step
};

[[nodiscard]] constexpr uses operator|(uses a, uses b) {
  return static_cast<uses>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr bool has(uses set, uses flag) {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(flag)) != 0;
}
/// The step needs what the tensor held before it.
[[nodiscard]] constexpr bool needs_contents(uses u) { return !has(u, uses::create); }
/// The step changes the tensor, so that all other copies are stale.
[[nodiscard]] constexpr bool modifies(uses u) { return has(u, uses::write) || has(u, uses::create); }

struct access {
  tensor_id tensor;
  uses how = uses::none;
};

[[nodiscard]] constexpr access reads(tensor_id t) { return {t, uses::read}; }
[[nodiscard]] constexpr access writes(tensor_id t) { return {t, uses::write}; }
[[nodiscard]] constexpr access creates(tensor_id t) { return {t, uses::create}; }
[[nodiscard]] constexpr access frees(tensor_id t) { return {t, uses::free}; }

struct step_options {
  place where = place::device;
  byte_count workspace = 0;  ///< scratch bytes that the lease provides in the step's tier
  double seconds = 0.0;      ///< expected duration; 0: learnt from the first iterations
  std::string phase = {};    ///< "forward", "backward", "update", ...: how reports and bounds group steps
};

/// One entry of an order.
struct order_step {
  std::string name;
  std::vector<access> accesses;  ///< each tensor once, its uses united
  step_options options;
};

/// The cyclic sequence of steps of one iteration. A plain value.
class order {
 public:
  /// Appends a step. Several accesses to the same tensor are united: {reads(a), frees(a)}.
  /// \throws usage_error when a tensor is invalid, or both created and read in one step.
  step_id step(std::string_view name, std::vector<access> accesses, step_options options = {});

  [[nodiscard]] const std::vector<order_step>& steps() const noexcept { return steps_; }
  [[nodiscard]] const order_step& at(step_id id) const { return steps_.at(id.index); }
  /// The same for equal orders on every machine; names excluded.
  [[nodiscard]] std::uint64_t hash() const noexcept;

 private:
  std::vector<order_step> steps_;
};

}  // namespace forebay
