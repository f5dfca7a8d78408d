#include <unistd.h>

#include <exception>
#include <forebay/base/error.hpp>
#include <iostream>

#include "run.hpp"
#include "settings.hpp"

/// Exit codes: 0 done, 1 failed, 2 used wrongly, 128 + n ended by signal n.
int main(int argc, char** argv) {
  try {
    const train_gpt::command_line line = train_gpt::parse_command_line(argc, argv, std::cout, std::cerr);
    if (!line.chosen) {
      return line.exit_code;
    }
    return train_gpt::run(*line.chosen, std::cout, isatty(STDOUT_FILENO) != 0, std::cerr);
  } catch (const forebay::usage_error& e) {
    std::cerr << "train_gpt: " << e.what() << '\n';
    return train_gpt::exit_usage;
  } catch (const std::exception& e) {
    std::cerr << "train_gpt: " << e.what() << '\n';
    return train_gpt::exit_failure;
  }
}
