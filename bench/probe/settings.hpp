#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::probe {

enum class device_choice : std::uint8_t { automatic, emulated, cuda };

/// What the command line asks for.
struct settings {
  std::vector<std::filesystem::path> storage;
  byte_count size = 0;  ///< of the working set; 0: 1 GiB, or half of what is free where that is less
  unsigned rounds = 5;
  device_choice device = device_choice::automatic;
  int ordinal = 0;                       ///< of the CUDA device
  byte_count emulated_capacity = 1_GiB;  ///< what the model says of an emulated device
  std::filesystem::path json;            ///< empty: standard output
};

/// Reads the command line. Exits after --help and on a wrong option. \throws usage_error when what was asked for does
/// not fit into half of the free memory or disk space.
[[nodiscard]] settings parse(int argc, char** argv);

}  // namespace forebay::probe
