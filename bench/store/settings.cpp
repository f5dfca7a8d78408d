#include "settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <forebay/base/error.hpp>
#include <forebay/memory/host_limits.hpp>

#include "command_line.hpp"

namespace forebay::store_bench {
namespace {

constexpr byte_count usual_size = 2_GiB;
constexpr byte_count size_unit = 4_MiB;  // the largest block of the reference
constexpr byte_count least_tensor = 4_KiB;
constexpr byte_count files_per_run = 3;  // the store's, the reference's and fio's

double parse_mix(const std::string& text) {
  const auto part = [&](std::size_t from, std::size_t to) {
    unsigned value = 0;
    const auto [end, status] = std::from_chars(text.data() + from, text.data() + to, value);
    if (from == to || status != std::errc{} || end != text.data() + to) {
      throw CLI::ValidationError("--mix", "'" + text + "' is not two whole numbers R:W");
    }
    return static_cast<double>(value);
  };
  const std::size_t colon = std::min(text.find(':'), text.size());
  const double reads = part(0, colon);
  const double writes = part(std::min(colon + 1, text.size()), text.size());
  if (reads <= 0.0 || writes <= 0.0) {
    throw CLI::ValidationError("--mix", "both parts of '" + text + "' must be above zero");
  }
  return reads / (reads + writes);
}

/// The most that the tensors may have in all: half of the free memory and half of the free disk space. Paths may share
/// a drive, so the space of the smallest path counts.
byte_count affordable(const settings& s) {
  byte_count most = available_host_memory().available / 2;
  for (const std::filesystem::path& path : s.paths) {
    most = std::min(most, free_disk(path, "--path") / 2 / files_per_run);
  }
  return most;
}

void choose_sizes(settings& s) {
  const byte_count most = align_down(affordable(s), size_unit);
  const bool open = s.size == 0;
  s.size = align_down(open ? std::min(usual_size, most) : s.size, size_unit);
  if (s.size == 0 || s.size > most) {
    throw usage_error(
        fmt::format("--size {}: half of the free memory and disk space allow {} (the tensors are in memory once and on "
                    "disk up to three times), and at least {} are needed",
                    format_bytes(s.size), format_bytes(most), format_bytes(size_unit)));
  }
  if (open && s.size < usual_size) {
    fmt::print(stderr, "size lowered to {}: half of the free memory or disk space\n", format_bytes(s.size));
  }
  if (s.tensor_sizes.empty()) {
    for (const byte_count bytes : {64_KiB, 256_KiB, 1_MiB, 16_MiB, 64_MiB, 256_MiB}) {
      if (bytes * 2 <= s.size) {
        s.tensor_sizes.push_back(bytes);
      } else {
        fmt::print(stderr, "tensors of {} left out: two must fit into {}\n", format_bytes(bytes), format_bytes(s.size));
      }
    }
  }
  for (const byte_count bytes : s.tensor_sizes) {
    if (bytes < least_tensor || bytes % least_tensor != 0 || bytes > s.size / 2) {
      throw usage_error(fmt::format("--tensor-size {}: must be a multiple of {} and at most half of the {} in all",
                                    format_bytes(bytes), format_bytes(least_tensor), format_bytes(s.size)));
    }
  }
}

void add_options(CLI::App& app, settings& s, std::vector<std::string>& sizes, std::string& mix) {
  const std::map<std::string, io::backend_kind> kinds{{"auto", io::backend_kind::automatic},
                                                      {"uring", io::backend_kind::uring},
                                                      {"threads", io::backend_kind::threads}};
  app.add_option("--path", s.paths, "Directory of the storage tier; several for several paths (default: .)");
  add_bytes(app, "--size", s.size, "All tensors together (default: 2GiB, or half of what is free)");
  app.add_option("--tensor-size", sizes, "One tensor; several to measure several (default: 64KiB to 256MiB)");
  app.add_option("--depth", s.depth, "Transfers in flight per path (default: the library's)");
  add_bytes(app, "--chunk", s.chunk, "Unit of striping and checksums (default: the library's)");
  add_bytes(app, "--merge", s.merge, "Largest merged transfer (default: the library's)");
  app.add_option("--mix", mix, "Reads to writes of the mixed passes, R:W")->capture_default_str();
  app.add_option("--io", s.io, "Backend of the store")->transform(CLI::CheckedTransformer(kinds));
  app.add_flag("!--no-checksums", s.checksums, "Without the store's checksums");
  app.add_flag("--verify", s.verify, "Check every byte that comes back");
  add_bytes(app, "--window", s.window, "Bytes submitted and not completed at most (default: all at once)");
  app.add_option("--rounds", s.rounds, "Paired rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--json", s.json, "Also write every pair and the summary there, an object a line");
  app.add_flag("--fio", s.fio, "Also run the installed fio on the same directory");
}

}  // namespace

settings parse(int argc, char** argv) {
  settings s;
  std::vector<std::string> sizes;
  std::string mix = "50:50";
  CLI::App app("The storage tier beside a bare io_uring on the same drive, in paired rounds of one run.");
  add_options(app, s, sizes, mix);
  try {
    app.parse(argc, argv);
    s.read_share = parse_mix(mix);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  for (const std::string& text : sizes) {
    s.tensor_sizes.push_back(parse_bytes(text));
  }
  if (s.paths.empty()) {
    s.paths.push_back(std::filesystem::current_path());
  }
  choose_sizes(s);
  return s;
}

}  // namespace forebay::store_bench
