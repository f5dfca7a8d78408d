#pragma once

#include <iosfwd>

#include "settings.hpp"

namespace train_gpt {

/// Trains as the settings say. Progress goes to `out`, what the engine had to do without to `errors`, both nothing when
/// quiet. Returns the exit code: 0, or 128 and the signal that ended the run. \throws forebay::usage_error,
/// forebay::error.
int run(const settings& s, std::ostream& out, bool out_is_terminal, std::ostream& errors);

}  // namespace train_gpt
