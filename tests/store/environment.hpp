#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../io/child_process.hpp"
#include "../io/io_fixture.hpp"

namespace forebay::environment {

inline constexpr const char* place_variable = "FOREBAY_TEST_PLACE";
inline constexpr const char* refusal_variable = "FOREBAY_TEST_REFUSE_RING";

/// The directory that a case gives its child; null in the plain run of a child's test.
inline const char* given_place() { return std::getenv(place_variable); }

/// From now on this thread, and all that it starts, are refused `io_uring_setup` with this errno: what container
/// runtimes do. False where no filter can be installed.
inline bool refuse_io_uring(int error_number) {
  constexpr unsigned number_at = offsetof(seccomp_data, nr);
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number_at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(SYS_io_uring_setup), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<unsigned>(error_number) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Refuses what the case that runs this child asked for.
inline void refuse_what_was_asked() {
  const char* wanted = std::getenv(refusal_variable);
  if (wanted != nullptr && !refuse_io_uring(std::atoi(wanted))) {
    std::puts("no filter can be installed");
    std::exit(0);
  }
}

/// A command that runs one test of this program at a place.
inline std::string test_at(const std::string& place, const std::string& test, const std::string& wrapper = "") {
  return std::string(place_variable) + "='" + place + "' " + io_test::child_test(wrapper, test);
}

/// Drops the right to lock any amount of memory and sets the limit.
inline std::string with_memlock(byte_count limit) {
  const std::string n = std::to_string(limit);
  const std::string drop = ::geteuid() == 0 ? " setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock" : "";
  return "prlimit --memlock=" + n + ":" + n + drop;
}

/// Another user, who owns nothing here; empty where this user can't become one, or that one can't run this program.
inline std::string as_nobody() {
  const std::string become = "setpriv --reuid=65534 --regid=65534 --clear-groups";
  return io_test::run_command(become + " '" + io_test::this_program() + "' --gtest_list_tests").status == 0 ? become
                                                                                                            : "";
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

}  // namespace forebay::environment
