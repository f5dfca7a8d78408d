#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <forebay/base/bytes.hpp>

namespace forebay::store_bench {

enum class mode : std::uint8_t { overwrite, read, mix };

inline constexpr mode all_modes[] = {mode::overwrite, mode::read, mode::mix};

[[nodiscard]] constexpr std::string_view to_string(mode m) {
  return m == mode::overwrite ? "overwrite" : (m == mode::read ? "read" : "mix");
}

/// One transfer of a pass: bytes [offset, offset + bytes) of the tensors laid end to end.
struct piece {
  byte_count offset = 0;
  byte_count bytes = 0;
  bool reads = false;
};

/// What one pass moves.
struct workload {
  mode what = mode::read;
  byte_count total = 0;
  byte_count tensor = 0;
  double read_share = 0.5;  ///< of a mixed pass
};

/// The transfers of a pass in the order of submission: tensors in an order shuffled by `seed`, each in pieces of at
/// most `granule`, one after another. Where a tensor is smaller than a granule, granules are shuffled in its place. In
/// a mixed pass each tensor, or each 4 MiB of smaller ones, is either read or written, the same ones for every granule;
/// reads and writes take turns in proportion to their numbers.
[[nodiscard]] std::vector<piece> make_pass(const workload& w, byte_count granule, std::uint64_t seed);

}  // namespace forebay::store_bench
