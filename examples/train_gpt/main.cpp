#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <forebay/base/error.hpp>
#include <iostream>

#include "run.hpp"
#include "settings.hpp"

namespace {

/// The matrix library's idle threads spin, by default for so long that they take the CPUs from the threads that have
/// work whenever there are more of those than CPUs. Their run-time reads the environment before main() is called, so
/// the program sets the limit and starts anew, once. Where that is refused it is only slower.
void limit_spinning(char** argv) {
  constexpr const char* limit = "GOMP_SPINCOUNT";
  if (std::getenv(limit) == nullptr && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    ::setenv(limit, "2000", 1);
    ::execv("/proc/self/exe", argv);
  }
}

}  // namespace

/// Exit codes: 0 done, 1 failed, 2 used wrongly, 128 + n ended by signal n.
int main(int argc, char** argv) {
  limit_spinning(argv);
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
