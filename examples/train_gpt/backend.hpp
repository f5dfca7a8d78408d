#pragma once

#include <memory>

#include <forebay/device/device.hpp>
#include <forebay/optimizer/device_update.hpp>

#include "operations.hpp"
#include "settings.hpp"

namespace train_gpt {

/// Where the settings let the model be computed: the CPU in an emulated device's memory, or a GPU.
/// \throws forebay::unsupported_error when a GPU is demanded and the build or the machine lacks it;
/// forebay::usage_error on link rates that a GPU can't be given.
[[nodiscard]] std::unique_ptr<operations<float>> make_operations(const settings& s);
/// Null where the host updates.
[[nodiscard]] std::unique_ptr<forebay::device_update> make_update_kernels(const settings& s);
/// With that much memory. \throws whatever the device throws.
[[nodiscard]] std::unique_ptr<forebay::device> make_device(const settings& s, forebay::byte_count capacity);

}  // namespace train_gpt
