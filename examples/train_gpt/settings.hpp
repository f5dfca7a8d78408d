#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/engine/recomputation.hpp>
#include <forebay/io/backend.hpp>

#include "operations.hpp"
#include "tensors.hpp"

namespace train_gpt {

/// Who decides when tensors move: the planner, the fixed two-step look-ahead that it is compared with, or nobody, and
/// the engine looks ahead as memory allows.
enum class planner_choice : std::uint8_t { automatic, look_ahead, off };

enum class device_kind : std::uint8_t { automatic, cuda, emulated };

/// What the command line says. The defaults train 25.4 million parameters, 387 MiB with gradients and Adam state, in
/// 64 MiB of device memory and 192 MiB of host memory.
struct settings {
  std::vector<std::filesystem::path> data;  ///< empty: the compiler's C++ headers
  model_shape shape{.layers = 8, .width = 512, .heads = 8, .context = 128, .batch = 4, .micro_batches = 1};
  std::uint64_t steps = 24;
  std::uint64_t seed = 1;
  float lr = 1e-3F;
  float clip = 1.0F;
  float weight_decay = 0.01F;

  device_kind device = device_kind::automatic;  ///< automatic: emulated, which every machine has
  matmul_precision matmul = matmul_precision::fp32;
  forebay::byte_count device_memory = 64ULL << 20U;
  forebay::byte_count host_memory = 192ULL << 20U;
  std::vector<std::filesystem::path> storage;  ///< empty: a fresh folder under the current one
  forebay::byte_count storage_capacity = 0;    ///< of each path; 0: what is free
  // Bytes per second; 0: as fast as it goes.
  forebay::byte_count h2d_rate = 0;
  forebay::byte_count d2h_rate = 0;
  forebay::byte_count storage_read_rate = 0;  ///< of each path
  forebay::byte_count storage_write_rate = 0;
  forebay::io::backend_kind io = forebay::io::backend_kind::automatic;
  planner_choice planner = planner_choice::automatic;
  forebay::recompute_policy recompute = forebay::recompute_policy::automatic;
  bool resident = false;

  std::optional<std::filesystem::path> json;
  std::optional<std::filesystem::path> trace;
  std::optional<std::filesystem::path> dump;
  bool quiet = false;
};

/// Either settings, or the exit code with which the program ends at once (help, or a usage error already explained).
struct command_line {
  std::optional<settings> chosen;
  int exit_code = 0;
};

inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;

/// Parses the arguments; says on `out` what help was asked for, and on `errors` what is wrong: option, value and limit.
[[nodiscard]] command_line parse_command_line(int argc, const char* const* argv, std::ostream& out,
                                              std::ostream& errors);

}  // namespace train_gpt
