#include "report.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "statistics.hpp"

namespace forebay::store_bench {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const cost& c) {
  return {{"bytes", c.bytes}, {"seconds", c.seconds}, {"cpu_seconds", c.cpu_seconds}};
}

template <typename Value>
std::vector<double> all(const std::vector<pair>& pairs, mode m, byte_count tensor, Value&& value) {
  std::vector<double> values;
  for (const pair& p : pairs) {
    if (p.what.what == m && p.what.tensor == tensor) {
      values.push_back(value(p));
    }
  }
  return values;
}

}  // namespace

report::report(const settings& s, const circumstances& c, const reference& r) {
  if (!s.json.empty()) {
    json_.open(s.json);
    if (!json_) {
      throw std::runtime_error("cannot write " + s.json.string());
    }
  }
  header(s, c, r);
}

void report::header(const settings& s, const circumstances& c, const reference& r) {
  ordered_json paths = ordered_json::array();
  for (const std::filesystem::path& path : s.paths) {
    paths.push_back(path.string());
  }
  ordered_json shapes;
  for (const mode m : all_modes) {
    shapes[std::string(to_string(m))] = {{"block_bytes", r.shape(m).block}, {"depth", r.shape(m).depth}};
    fmt::print("reference, {}: blocks of {} at depth {}\n", to_string(m), format_bytes(r.shape(m).block),
               r.shape(m).depth);
  }
  fmt::print("store: {}, checksums {}, {} in all, {:.0f}% reads in the mix, {} of the memory on huge pages{}{}\n",
             c.backend, s.checksums ? "on" : "off", format_bytes(s.size), 100 * s.read_share,
             format_bytes(c.huge_bytes), s.verify ? ", every byte read is checked" : "",
             c.reference_direct ? "" : ", O_DIRECT refused");
  for (const std::string& text : c.degradations) {
    fmt::print("degraded: {}\n", text);
  }
  fmt::print("{:>9} {:>8} | {:>6} {:>6} {:>6} [{:>5}-{:>5}] | {:>6} {:>6} {:>7}\n", "mode", "tensor", "store", "ring",
             "ratio", "p25", "p75", "store", "ring", "differ");
  fmt::print("{:>18} | {:>6} {:>6} {:>22} | {:>21}\n", "", "GB/s", "GB/s", "", "CPU ms/GB");
  json_ << ordered_json{{"kind", "run"},
                        {"paths", paths},
                        {"size_bytes", s.size},
                        {"rounds", s.rounds},
                        {"depth", s.depth},
                        {"chunk_bytes", s.chunk},
                        {"merge_bytes", s.merge},
                        {"window_bytes", s.window},
                        {"read_share", s.read_share},
                        {"checksums", s.checksums},
                        {"verify", s.verify},
                        {"backend", c.backend},
                        {"degradations", c.degradations},
                        {"huge_bytes", c.huge_bytes},
                        {"reference", shapes}}
        << "\n";
}

void report::add(const pair& p) {
  pairs_.push_back(p);
  json_ << ordered_json{{"kind", "pair"},
                        {"mode", to_string(p.what.what)},
                        {"tensor_bytes", p.what.tensor},
                        {"round", p.round},
                        {"store_first", p.store_first},
                        {"store", json_of(p.store)},
                        {"reference", json_of(p.reference)}}
        << std::endl;
}

void report::add_other(const std::string& program, mode m, const std::vector<cost>& other,
                       const std::vector<cost>& reference) {
  std::vector<double> rates, reference_rates, ratios, cpu, reference_cpu;
  for (std::size_t i = 0; i < other.size(); ++i) {
    rates.push_back(other[i].gigabytes_per_second());
    reference_rates.push_back(reference[i].gigabytes_per_second());
    ratios.push_back(rates[i] / reference_rates[i]);
    cpu.push_back(other[i].cpu_ms_per_gigabyte());
    reference_cpu.push_back(reference[i].cpu_ms_per_gigabyte());
    json_ << ordered_json{{"kind", program},
                          {"mode", to_string(m)},
                          {"round", i},
                          {program, json_of(other[i])},
                          {"reference", json_of(reference[i])}}
          << "\n";
  }
  print_row({m, 0, median(rates), median(reference_rates), median(ratios), quantile(ratios, 0.25),
             quantile(ratios, 0.75), median(cpu), median(reference_cpu), median(cpu) - median(reference_cpu)},
            program);
}

report::line report::sum_up(mode m, byte_count tensor) const {
  const auto of = [&](auto&& value) { return all(pairs_, m, tensor, value); };
  const std::vector<double> ratios = of([](const pair& p) { return p.reference.seconds / p.store.seconds; });
  return {m,
          tensor,
          median(of([](const pair& p) { return p.store.gigabytes_per_second(); })),
          median(of([](const pair& p) { return p.reference.gigabytes_per_second(); })),
          median(ratios),
          quantile(ratios, 0.25),
          quantile(ratios, 0.75),
          median(of([](const pair& p) { return p.store.cpu_ms_per_gigabyte(); })),
          median(of([](const pair& p) { return p.reference.cpu_ms_per_gigabyte(); })),
          median(of([](const pair& p) { return p.store.cpu_ms_per_gigabyte() - p.reference.cpu_ms_per_gigabyte(); }))};
}

void report::print_row(const line& l, const std::string& name) {
  fmt::print("{:>9} {:>8} | {:>6.2f} {:>6.2f} {:>6.3f} [{:>5.3f}-{:>5.3f}] | {:>6.1f} {:>6.1f} {:>+7.1f}\n",
             to_string(l.what), name, l.store_rate, l.reference_rate, l.ratio, l.ratio_p25, l.ratio_p75, l.store_cpu,
             l.reference_cpu, l.cpu_difference);
  std::fflush(stdout);
}

void report::conclude(mode m, byte_count tensor) {
  lines_.push_back(sum_up(m, tensor));
  const line& l = lines_.back();
  print_row(l, format_bytes(tensor));
  write(l);
}

void report::write(const line& l) {
  json_ << ordered_json{{"kind", "summary"},
                        {"mode", to_string(l.what)},
                        {"tensor_bytes", l.tensor},
                        {"store_gigabytes_per_second", l.store_rate},
                        {"reference_gigabytes_per_second", l.reference_rate},
                        {"ratio_median", l.ratio},
                        {"ratio_p25", l.ratio_p25},
                        {"ratio_p75", l.ratio_p75},
                        {"store_cpu_ms_per_gigabyte", l.store_cpu},
                        {"reference_cpu_ms_per_gigabyte", l.reference_cpu},
                        {"cpu_ms_per_gigabyte_difference", l.cpu_difference}}
        << std::endl;
}

void report::finish() {
  constexpr byte_count small = 64_KiB;
  constexpr byte_count large = 16_MiB;
  for (const mode m : all_modes) {
    const auto find = [&](byte_count tensor) {
      return std::find_if(lines_.begin(), lines_.end(),
                          [&](const line& l) { return l.what == m && l.tensor == tensor; });
    };
    const auto a = find(small);
    const auto b = find(large);
    if (a == lines_.end() || b == lines_.end()) {
      continue;
    }
    // Measured at different times, so the rates are compared by what the reference did beside each.
    fmt::print("{}: tensors of {} reach {:.3f} of the rate of those of {} (each over its reference)\n", to_string(m),
               format_bytes(small), a->ratio / b->ratio, format_bytes(large));
    json_ << ordered_json{{"kind", "sizes"},
                          {"mode", to_string(m)},
                          {"tensor_bytes", small},
                          {"other_tensor_bytes", large},
                          {"ratio", a->ratio / b->ratio}}
          << "\n";
  }
}

}  // namespace forebay::store_bench
