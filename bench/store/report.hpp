#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "measure.hpp"
#include "reference.hpp"
#include "settings.hpp"
#include "workload.hpp"

namespace forebay::store_bench {

/// One round of one mode and size: the store and the reference, one right after the other.
struct pair {
  workload what;
  unsigned round = 0;
  bool store_first = false;
  cost store;
  cost reference;
};

/// Circumstances that belong to the figures.
struct circumstances {
  std::string backend;
  std::vector<std::string> degradations;
  byte_count huge_bytes = 0;  ///< of the tensors' memory, on huge pages
  bool reference_direct = true;
};

/// Collects pairs, writes them as they come, and sums them up. Medians of rates and of costs per byte, the median of
/// the paired ratios with its quartiles: rates of a drive drift, ratios within a pair do not.
class report {
 public:
  /// \throws std::runtime_error when the file for JSON can't be written.
  report(const settings& s, const circumstances& c, const reference& r);

  void add(const pair& p);
  /// Another program beside the reference, one right after the other: prints the line of a mode.
  void add_other(const std::string& program, mode m, const std::vector<cost>& other,
                 const std::vector<cost>& reference);
  /// Prints the line of a mode and size, when all its rounds are in.
  void conclude(mode m, byte_count tensor);
  /// Prints what compares sizes.
  void finish();

 private:
  struct line {
    mode what;
    byte_count tensor;
    double store_rate, reference_rate, ratio, ratio_p25, ratio_p75;
    double store_cpu, reference_cpu, cpu_difference;
  };
  static void print_row(const line& l, const std::string& name);
  void header(const settings& s, const circumstances& c, const reference& r);
  [[nodiscard]] line sum_up(mode m, byte_count tensor) const;
  void write(const line& l);

  std::ofstream json_;
  std::vector<pair> pairs_;
  std::vector<line> lines_;
};

}  // namespace forebay::store_bench
