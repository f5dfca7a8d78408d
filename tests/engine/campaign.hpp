#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <forebay/io/backend.hpp>
#include <forebay/testing/io_faults.hpp>

namespace forebay::campaign {

/// How an engine under faults is set up.
struct setup {
  io::backend_kind kind = io::backend_kind::automatic;
  unsigned paths = 1;
  bool checksums = true;
  bool direct = true;
  bool prefetch = true;
  double room = 0.0;  ///< host and device capacity above the smallest, as a part of all tensors
  std::chrono::milliseconds stall_limit{20'000};
  /// A defect to plant between the store and the backend; null: none.
  std::function<std::unique_ptr<io::backend>(std::unique_ptr<io::backend>)> defect{};
};

/// One run of the workload `layers` under one script.
struct trial {
  std::uint64_t seed = 0;
  setup how;
  testing::fault_script script;
};

/// The trial of a seed: a setup and a random script of one to five faults, of which some pass, some end the run, and
/// some deliver wrong bytes (those only where checksums are on).
[[nodiscard]] trial make_trial(std::uint64_t seed);

/// Everything needed to repeat a trial.
[[nodiscard]] std::string describe(const trial& t);

/// What a trial came to.
struct finding {
  std::string problem;  ///< empty: all is as it must be
  std::string error;    ///< the typed error that ended the run; empty: the right bytes
  testing::io_faults::counts seen;
  double seconds = 0.0;
};

/// Runs the workload and judges it. It must end in the bytes that plain memory has, or in a typed error that the script
/// explains and that names tensor, tier, path, offset, wanted, got and errno; it must leave no thread, descriptor or
/// file. A run that does not end within the limit of a watchdog ends the process with a picture of its threads.
[[nodiscard]] finding run(const trial& t);

}  // namespace forebay::campaign
