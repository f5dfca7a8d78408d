#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::store_bench {

/// What the command line asks for.
struct settings {
  std::vector<std::filesystem::path> paths;
  byte_count size = 0;  ///< bytes of all tensors together; 0: 2 GiB, or less where memory or disk are short
  std::vector<byte_count> tensor_sizes;  ///< empty: 64 KiB to 256 MiB
  unsigned depth = 0;                    ///< 0: the library's own
  byte_count chunk = 0;                  ///< 0: the library's own
  byte_count merge = 0;                  ///< 0: the library's own
  double read_share = 0.5;               ///< of the mixed passes
  io::backend_kind io = io::backend_kind::automatic;
  bool checksums = true;
  bool verify = false;
  bool fio = false;
  byte_count window = 0;  ///< bytes submitted and not completed at most; 0: all at once
  unsigned rounds = 15;
  std::filesystem::path json;  ///< empty: none
};

/// Reads the command line; sizes that were left open are chosen so that the run takes at most half of the memory and
/// of the disk space that are free, and what was lowered is said on standard error. Exits after --help and on a wrong
/// option. \throws usage_error when what was asked for does not fit.
[[nodiscard]] settings parse(int argc, char** argv);

}  // namespace forebay::store_bench
