#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <forebay/engine/report.hpp>

#include "trainer.hpp"

namespace train_gpt {

/// How a whole run went.
struct run_summary {
  std::uint64_t parameters = 0;
  forebay::byte_count state_bytes = 0;  ///< of weights, gradients, m and v
  forebay::engine_report memory;
  forebay::plan_report plan;
  double tokens_per_second = 0.0;
  std::uint64_t recomputations = 0;  ///< of a layer in a micro-batch, in the last step
  std::uint64_t recomputable = 0;    ///< how many there could be
  std::string digest;
};

/// The fp32's bits as 8 lower-case hex digits.
[[nodiscard]] std::string bits_of(float value);

/// One JSON object a line: each step, then the summary. Every line is in the file when its call returns.
class json_log {
 public:
  /// \throws forebay::io_error with the path.
  explicit json_log(std::filesystem::path path);

  void add(std::uint64_t step, const step_result& result);
  void add(const run_summary& summary);

 private:
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace train_gpt
