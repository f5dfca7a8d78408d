#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <forebay/base/error.hpp>
#include <forebay/memory/host_limits.hpp>

#include "../store/command_line.hpp"

namespace forebay::probe {
namespace {

constexpr byte_count usual_size = 1_GiB;
constexpr byte_count size_unit = 64_MiB;  // the storage passes' quarters are whole tensors

void choose_size(settings& s) {
  byte_count most = available_host_memory().available / 2;
  for (const std::filesystem::path& path : s.storage) {
    most = std::min(most, store_bench::free_disk(path, "--storage") / 2);
  }
  const byte_count wanted = s.size == 0 ? std::min(usual_size, most) : s.size;
  if (wanted > most || wanted < size_unit) {
    throw usage_error(fmt::format("--size {}: from {} to half of the free memory and disk space, which is {}",
                                  format_bytes(wanted), format_bytes(size_unit), format_bytes(most)));
  }
  s.size = align_down(wanted, size_unit);
}

}  // namespace

settings parse(int argc, char** argv) {
  settings s;
  const std::map<std::string, device_choice> devices{
      {"auto", device_choice::automatic}, {"emulated", device_choice::emulated}, {"cuda", device_choice::cuda}};
  CLI::App app("Measures this machine and writes the model that plans and bounds are made with, as JSON.");
  app.add_option("--storage", s.storage, "Directory of a storage path; several, each on a drive of its own");
  store_bench::add_bytes(app, "--size", s.size, "Working set (default: 1GiB, or half of what is free)");
  app.add_option("--rounds", s.rounds, "Passes; the median counts")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--device", s.device, "The device: auto (CUDA where there is one), emulated or cuda")
      ->transform(CLI::CheckedTransformer(devices));
  app.add_option("--cuda-ordinal", s.ordinal, "Which CUDA device")->check(CLI::NonNegativeNumber);
  store_bench::add_bytes(app, "--emulated-capacity", s.emulated_capacity, "Memory of an emulated device in the model");
  app.add_option("--json", s.json, "Where to write (default: standard output)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  choose_size(s);
  return s;
}

}  // namespace forebay::probe
