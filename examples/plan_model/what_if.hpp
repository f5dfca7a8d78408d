#pragma once

#include <optional>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>

#include "prediction.hpp"
#include "settings.hpp"

namespace plan_model {

/// \throws usage_error, io_error
[[nodiscard]] question question_of(const settings& s);

/// What would change the answer: the same program with further options.
struct what_if {
  std::string what;                  ///< "twice the host memory"
  std::vector<std::string> options;  ///< "--ram", "1024GB"
};

/// Those that make sense for this machine and this training.
[[nodiscard]] std::vector<what_if> what_ifs(const question& q, const settings& s);

/// The least capacity of a tier, to within about 7%, from which more brings less than 1% of time, all else being equal;
/// nothing when it does not fit however large the tier is. Some sixteen plans of little effort.
[[nodiscard]] std::optional<forebay::byte_count> enough_device_memory(question q, const prediction& p);
[[nodiscard]] std::optional<forebay::byte_count> enough_host_memory(question q, const prediction& p);

}  // namespace plan_model
