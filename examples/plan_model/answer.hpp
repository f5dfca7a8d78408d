#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prediction.hpp"
#include "settings.hpp"
#include "what_if.hpp"

namespace plan_model {

/// A line of the table of other machines.
struct alternative {
  what_if change;
  bool fits = false;
  double seconds = 0.0;
  double tokens_per_second = 0.0;
  double bound_seconds = 0.0;
  std::string binding;
};

/// A link's part in an iteration.
struct link_load {
  std::string link;
  forebay::byte_count bytes = 0;
  double busy = 0.0;  ///< share of the iteration that these bytes take at the link's rate
};

/// Everything that the program says.
struct answer {
  question asked;
  prediction predicted;
  std::optional<forebay::byte_count> enough_device;
  std::optional<forebay::byte_count> enough_host;
  std::vector<link_load> links;
  std::vector<std::pair<std::string, double>> idle;  ///< seconds of the device, by what it waits for; most first
  std::vector<alternative> alternatives;
};

/// \throws usage_error, io_error
[[nodiscard]] answer find_answer(const settings& s);

/// The resource that an operation keeps busy: "device", "CPU", "link to the device", "drive 0 reads", ...
[[nodiscard]] std::string resource_of(const forebay::plan::trace& t, const forebay::plan::machine& m,
                                      const forebay::plan::operation& op);

}  // namespace plan_model
