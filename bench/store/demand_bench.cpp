// How long one urgent read takes while the store is full of background writes: beside the time that the bytes in the
// kernel at its arrival, and its own, take at the rate of the run. Counts what less urgent work overtakes it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <forebay/base/error.hpp>
#include <forebay/memory/host_arena.hpp>
#include <forebay/store/page_store.hpp>

#include "command_line.hpp"
#include "demand_load.hpp"
#include "statistics.hpp"

namespace forebay::store_bench {
namespace {

constexpr double mega = 1024.0 * 1024.0;

struct demand_settings {
  std::vector<std::filesystem::path> paths;
  byte_count size = 1_GiB;         // of the pages that are written
  byte_count read_size = 256_MiB;  // of those that are read
  byte_count window = 64_MiB;      // of writes submitted and not completed
  std::vector<unsigned> depths{4, 16, 64};
  byte_count merge = 0;
  std::size_t reads = 1000;
  std::chrono::milliseconds interval{5};
  bool checksums = true;
};

std::vector<page_id> make_pages(page_store& store, byte_count bytes, const std::string& name) {
  std::vector<page_id> pages;
  for (byte_count at = 0; at < bytes; at += demand_page) {
    pages.push_back(store.allocate(demand_page, fmt::format("{} {}", name, at / demand_page)));
  }
  return pages;
}

void print(unsigned depth, const std::vector<demand>& demands, const std::vector<double>& rates) {
  std::vector<double> latency;
  std::vector<double> ratio;
  std::vector<double> work;
  std::vector<double> in_kernel;
  unsigned behind = 0;
  std::size_t one_before = 0;
  std::size_t overtaken = 0;
  for (const demand& d : demands) {
    const auto bytes = static_cast<double>(d.in_kernel + demand_chunk);
    latency.push_back(d.seconds * 1e3);
    ratio.push_back(d.seconds * rates[d.path] / bytes);
    work.push_back(static_cast<double>(d.moved) / bytes);
    in_kernel.push_back(static_cast<double>(d.in_kernel) / mega);
    behind += d.behind_it;
    one_before += d.before_it == 1 ? 1U : 0U;
    overtaken += d.before_it > 1 ? 1U : 0U;
  }
  const double rate = std::accumulate(rates.begin(), rates.end(), 0.0);
  fmt::print(
      "{:>5} {:>6} {:>6.2f} {:>6.0f} {:>8.2f} {:>8.2f} {:>7.2f} {:>7.2f} {:>8.2f} {:>8.2f} {:>7.1f} {:>6} {:>9}\n",
      depth, demands.size(), rate * 1e-9, median(in_kernel), median(latency), quantile(latency, 0.99), median(ratio),
      quantile(ratio, 0.99), median(work), quantile(work, 0.99),
      static_cast<double>(behind) / static_cast<double>(demands.size()), one_before, overtaken);
  std::fflush(stdout);
}

void print_heading() {
  fmt::print(
      "there: MiB that the path's file had in the kernel when the read came. ratio: latency / ((there + 1 MiB) / "
      "rate).\nwork: what the path moved meanwhile / (there + 1 MiB). behind: less urgent transfers that started while "
      "the\nkernel had the read, per read. one: reads before which one transfer started (it was being started as they "
      "came).\novertaken: by more than one.\n"
      "{:>5} {:>6} {:>6} {:>6} {:>8} {:>8} {:>7} {:>7} {:>8} {:>8} {:>7} {:>6} {:>9}\n",
      "depth", "reads", "GB/s", "there", "p50 ms", "p99 ms", "ratio50", "ratio99", "work50", "work99", "behind", "one",
      "overtaken");
}

void run(const demand_settings& s, unsigned depth) {
  const byte_count merge = s.merge == 0 ? io::usual_merge : s.merge;
  kernel_watch watch(s.paths.size(), merge);
  host_arena memory(s.window + demand_chunk);
  page_store_options o;
  for (const std::filesystem::path& path : s.paths) {
    o.paths.push_back({path});
  }
  o.chunk = demand_chunk;
  o.checksums = s.checksums;
  o.io.kind = io::backend_kind::uring;
  o.io.depth = depth;
  o.io.merge = merge;
  o.io.faults = &watch;
  page_store store(std::move(o));
  store.register_memory(memory.memory());
  store.reserve(s.size + s.read_size);
  const std::vector<page_id> read_pages = make_pages(store, s.read_size, "read");
  const std::vector<page_id> written_pages = make_pages(store, s.size, "written");
  for (const std::vector<page_id>* pages : {&read_pages, &written_pages}) {
    background_writes fill(store, *pages, memory.memory().first(s.window));
    fill.start(pages->size() * (demand_page / demand_chunk));
    fill.finish();
  }
  background_writes writes(store, written_pages, memory.memory().first(s.window));
  urgent_reader reader(store, watch, memory.memory().last(demand_chunk));
  std::mt19937_64 random(depth);
  std::vector<demand> demands;
  std::vector<byte_count> moved;
  writes.start(~std::uint64_t{0});
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < s.paths.size(); ++i) {
    moved.push_back(watch.moved(i));
  }
  for (auto next = start; demands.size() < s.reads; next += s.interval) {
    std::this_thread::sleep_until(next);
    demands.push_back(reader.read(read_pages[random() % read_pages.size()], random() % (demand_page / demand_chunk)));
    next = std::max(next, std::chrono::steady_clock::now() - s.interval);
  }
  const double seconds = to_seconds(std::chrono::steady_clock::now() - start);
  std::vector<double> rates;
  for (std::size_t i = 0; i < s.paths.size(); ++i) {
    rates.push_back(static_cast<double>(watch.moved(i) - moved[i]) / seconds);
  }
  writes.stop();
  writes.finish();
  print(depth, demands, rates);
}

demand_settings parse_demand(int argc, char** argv) {
  demand_settings s;
  unsigned interval_ms = 5;
  CLI::App app("Urgent reads of 1 MiB while a page store is full of background writes.");
  app.add_option("--path", s.paths, "Directory of the storage tier; several for several paths (default: .)");
  app.add_option("--depth", s.depths, "Transfers in flight per path, each in a run of its own")->delimiter(',');
  add_bytes(app, "--merge", s.merge, "Largest merged transfer (default: the library's)");
  add_bytes(app, "--size", s.size, "Pages that are written over and over (default: 1GiB)");
  add_bytes(app, "--window", s.window, "Bytes of writes submitted and not completed (default: 64MiB)");
  app.add_option("--reads", s.reads, "Urgent reads per run")->capture_default_str();
  app.add_option("--interval", interval_ms, "Milliseconds from one read to the next")->capture_default_str();
  app.add_flag("!--no-checksums", s.checksums, "Without the store's checksums");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  s.interval = std::chrono::milliseconds(interval_ms);
  s.window = std::max(align_down(s.window, demand_chunk), demand_chunk);
  s.size = std::max(align_up(s.size, demand_page), align_up(2 * s.window, demand_page));
  if (s.paths.empty()) {
    s.paths.push_back(std::filesystem::current_path());
  }
  return s;
}

}  // namespace
}  // namespace forebay::store_bench

int main(int argc, char** argv) {
  using namespace forebay::store_bench;
  try {
    const demand_settings s = parse_demand(argc, argv);
    print_heading();
    for (const unsigned depth : s.depths) {
      run(s, depth);
    }
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
