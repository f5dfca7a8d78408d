#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include <forebay/base/bytes.hpp>
#include <forebay/device/device.hpp>
#include <forebay/plan/machine_json.hpp>

namespace forebay::probe {

/// How often each figure is measured; the median counts.
struct effort {
  unsigned rounds = 5;
};

/// Of one path, through the page store without its checksums: reads alone, writes alone, and reads being a quarter, a
/// half and three quarters of the bytes, in turns. Moves `memory.size()` bytes a pass, in tensors of 16 MiB.
/// \throws io_error and capacity_error of the store.
[[nodiscard]] plan::storage_link measure_storage(const std::filesystem::path& directory, std::span<std::byte> memory,
                                                 const effort& e);

/// memcpy from one half of `memory` to the other, on one thread and on all.
void measure_copies(std::span<std::byte> memory, const effort& e, plan::compute_rates& to);

/// AdamW in place over four arrays that fill `memory`, on all threads.
void measure_adam(std::span<std::byte> memory, const effort& e, plan::compute_rates& to);

/// Both directions of the link between `memory`, pinned where possible, and all of the device's arena: each alone, and
/// both at once. Fills in the link's rates.
void measure_link(device& d, std::span<std::byte> memory, const effort& e, plan::machine_description& to);

}  // namespace forebay::probe
