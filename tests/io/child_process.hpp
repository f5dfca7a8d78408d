#pragma once

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace forebay::io_test {

struct child_result {
  int status = -1;  ///< as a shell says it
  std::string output;
};

/// Runs a shell command; standard output and error together.
inline child_result run_command(const std::string& command) {
  child_result result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> part{};
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) {
    result.output.append(part.data(), n);
  }
  const int ended = ::pclose(pipe);
  result.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  return result;
}

inline std::string this_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return std::string(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
}

/// The command that runs one test of this program under `wrapper`. Leak checks need ptrace for themselves.
inline std::string child_test(const std::string& wrapper, const std::string& test) {
  return "ASAN_OPTIONS=detect_leaks=0 " + wrapper + " '" + this_program() + "' --gtest_filter='" + test + "'";
}

/// True when strace is there and may trace.
inline bool can_trace() { return run_command("strace -f -o /dev/null true").status == 0; }

/// strace that makes a system call fail.
inline std::string inject(const std::string& call, const std::string& what) {
  return "strace -f -o /dev/null -e trace=" + call + " -e inject=" + call + ":" + what;
}

}  // namespace forebay::io_test
