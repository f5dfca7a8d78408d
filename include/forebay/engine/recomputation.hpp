#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <forebay/base/id.hpp>
#include <forebay/plan/order.hpp>

namespace forebay {

class lease;
class stream;

/// Which activations are made again instead of kept or moved, where the user says how.
enum class recompute_policy : std::uint8_t {
  none,
  all,
  automatic  ///< none at first; then what promises to be faster, by measured durations and rates, as long as it is
};

/// A step that makes activations again.
struct recompute_step {
  std::string name;
  std::vector<access> accesses;  ///< only reads and creates, and frees of what the recomputation itself has created
  step_options options;          ///< `seconds` 0: as long as `like`
  /// Enqueues the work, with the same result, bit by bit, as the steps that made the activations the first time. Called
  /// on the thread that acquires, under no lock; the stream is the lease's, null for a host step. It may neither
  /// acquire nor keep the lease. What it throws is thrown by the acquire that needed the activations.
  std::function<void(const lease&, stream*)> run;
  step_id like{};  ///< a step of the order that takes as long; invalid: none is known
};

/// How activations can be made again: what its steps create, and don't free, need not exist from its last use before
/// the step `before` until there.
///
/// Whoever acquires steps notices nothing of it but the time: when an acquire needs what was given up, the engine first
/// runs the steps, on the acquire's stream. That is before `before`, for those who keep to the order, and before
/// whichever step comes first, for those who don't.
struct recomputation {
  step_id before;                     ///< the first step of the order that needs the activations again
  std::vector<recompute_step> steps;  ///< in order
};

}  // namespace forebay
