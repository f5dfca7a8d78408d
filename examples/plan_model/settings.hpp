#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "hardware.hpp"
#include "training.hpp"

namespace plan_model {

/// What the command line says.
struct settings {
  training what;
  machine_options where;
  double effort = 0.3;  ///< of the planner, for each prediction
  bool what_if = true;
  std::optional<std::filesystem::path> trace;  ///< a recorded order, in place of `what`
  std::optional<std::filesystem::path> json;
  std::optional<std::filesystem::path> timeline;
  std::vector<std::string> arguments;  ///< that these settings come from
};

/// Either settings, or the exit code with which the program ends at once (help, or a usage error already explained).
struct command_line {
  std::optional<settings> chosen;
  int exit_code = 0;
};

inline constexpr int exit_unfit = 1;  ///< the model does not fit, or something failed
inline constexpr int exit_usage = 2;

/// Parses the arguments, without the program's name; says on `out` what help was asked for, and on `errors` what is
/// wrong: option, value and limit.
[[nodiscard]] command_line parse_command_line(const std::vector<std::string>& arguments, std::ostream& out,
                                              std::ostream& errors);

/// The same settings with further options, which win over earlier ones. \throws usage_error
[[nodiscard]] settings with_options(const settings& s, const std::vector<std::string>& further);

}  // namespace plan_model
