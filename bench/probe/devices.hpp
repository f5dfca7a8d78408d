#pragma once

#include <memory>

#include <forebay/base/bytes.hpp>
#include <forebay/device/device.hpp>

#include "settings.hpp"

namespace forebay::probe {

/// The device to measure, with an arena that is enough for that.
struct chosen_device {
  std::unique_ptr<device> handle;
  byte_count capacity = 0;  ///< of the whole device, as the model has it
};

/// \throws unsupported_error when CUDA is demanded and the build or the machine lacks it.
[[nodiscard]] chosen_device choose_device(const settings& s);

}  // namespace forebay::probe
