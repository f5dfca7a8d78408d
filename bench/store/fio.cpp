#include "fio.hpp"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

namespace forebay::store_bench {
namespace {

/// Colons separate files on fio's command line.
std::string escaped(const std::string& name) {
  std::string result;
  for (const char c : name) {
    result += c == ':' ? "\\:" : std::string(1, c);
  }
  return result;
}

/// The exit status. \throws unsupported_error when it can't be started.
int run_program(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (const int refused = ::posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ);
      refused != 0) {
    throw unsupported_error(fmt::format("--fio: {} cannot be started: {}", arguments[0], describe_errno(refused)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

fio::fio(const settings& s)
    : size_(s.size),
      read_percent_(static_cast<unsigned>(std::lround(100 * s.read_share))),
      output_(s.paths.front() / fmt::format("bench-fio-{}.json", ::getpid())) {
  for (std::size_t i = 0; i < s.paths.size(); ++i) {
    files_.push_back(s.paths[i] / fmt::format("bench-fio-{}-{}", ::getpid(), i));
  }
  try {
    static_cast<void>(run({"--rw=write", "--fallocate=posix"}, {4_MiB, 4}));
  } catch (...) {
    remove_files();
    throw;
  }
}

fio::~fio() { remove_files(); }

void fio::remove_files() noexcept {
  std::error_code ignored;
  for (const std::filesystem::path& file : files_) {
    std::filesystem::remove(file, ignored);
  }
  std::filesystem::remove(output_, ignored);
}

cost fio::run(mode m, const ring_shape& shape) {
  switch (m) {
    case mode::overwrite:
      return run({"--rw=randwrite", "--fallocate=none", "--overwrite=1"}, shape);
    case mode::read:
      return run({"--rw=randread"}, shape);
    case mode::mix:
      break;
  }
  return run({"--rw=randrw", fmt::format("--rwmixread={}", read_percent_), "--fallocate=none", "--overwrite=1"}, shape);
}

cost fio::run(const std::vector<std::string>& arguments, const ring_shape& shape) {
  std::string names;
  for (const std::filesystem::path& file : files_) {
    names += (names.empty() ? "" : ":") + escaped(file.string());
  }
  std::vector<std::string> all{"fio",
                               "--name=bench",
                               "--ioengine=io_uring",
                               "--direct=1",
                               "--fixedbufs=1",
                               "--registerfiles=1",
                               "--filename=" + names,
                               fmt::format("--size={}", size_),
                               fmt::format("--bs={}", shape.block),
                               fmt::format("--iodepth={}", shape.depth * files_.size()),
                               "--output-format=json",
                               "--output=" + output_.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  if (const int status = run_program(all); status != 0) {
    throw error(fmt::format("--fio: {} ended with status {}", all[0], status));
  }
  std::ifstream in(output_);
  try {
    const nlohmann::json job = nlohmann::json::parse(in).at("jobs").at(0);
    const double seconds = job.at("job_runtime").get<double>() * 1e-3;
    const auto moved = [&](const char* direction) { return job.at(direction).at("io_bytes").get<byte_count>(); };
    const double busy = (job.at("usr_cpu").get<double>() + job.at("sys_cpu").get<double>()) / 100;
    return {moved("read") + moved("write"), seconds, busy * seconds};
  } catch (const nlohmann::json::exception& e) {
    throw error(fmt::format("--fio: its output cannot be understood: {}", e.what()));
  }
}

}  // namespace forebay::store_bench
