#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include <forebay/engine/report.hpp>

#include "json_log.hpp"
#include "trainer.hpp"

namespace train_gpt {

/// Tells a person how the run goes: one line that is written over on a terminal, plain lines elsewhere.
class progress {
 public:
  /// `out` outlives it.
  progress(std::ostream& out, bool terminal, std::uint64_t steps, std::size_t tokens_of_step)
      : out_(out), terminal_(terminal), steps_(steps), tokens_of_step_(tokens_of_step) {}
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void show(std::uint64_t step, const step_result& result, const forebay::tier_bytes& used);
  void show(const run_summary& summary);
  /// A line of its own.
  void say(const std::string& line);

 private:
  void end_line();

  std::ostream& out_;
  bool terminal_;
  bool in_line_ = false;
  std::uint64_t steps_;
  std::size_t tokens_of_step_;
  float first_loss_ = 0.0F;
  float last_loss_ = 0.0F;
};

}  // namespace train_gpt
