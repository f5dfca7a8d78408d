#include "progress.hpp"

#include <fmt/format.h>

#include <ostream>

namespace train_gpt {
namespace {

[[nodiscard]] std::string tiers(const forebay::tier_bytes& bytes) {
  return fmt::format("device {}, host {}, storage {}", forebay::format_bytes(bytes.device),
                     forebay::format_bytes(bytes.host), forebay::format_bytes(bytes.storage));
}

/// What a step takes, what it should and must take, and what would help most.
[[nodiscard]] std::string describe(const forebay::plan_report& plan) {
  std::string text = fmt::format("last step {:.3f} s, predicted {:.3f} s, bound {:.3f} s", plan.measured_seconds,
                                 plan.predicted_seconds, plan.bound_seconds);
  if (!plan.binding.empty()) {
    text += "; what binds: " + plan.binding.front();
  }
  if (!plan.limits.empty() && plan.limits.front().matters_from > 0.0) {
    const forebay::plan::limit& l = plan.limits.front();
    text += fmt::format("; with twice the {} the bound would be {:.3f} s", forebay::plan::to_string(l.what),
                        l.seconds_if_twice);
  }
  return text;
}

}  // namespace

progress::~progress() { end_line(); }

void progress::show(std::uint64_t step, const step_result& result, const forebay::tier_bytes& used) {
  if (step == 1) {
    first_loss_ = result.loss;
  }
  last_loss_ = result.loss;
  const forebay::iteration_report& cost = result.cost;
  const double seconds = cost.seconds > 0.0 ? cost.seconds : 1e-9;
  const std::string line = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  {:.0f} tokens/s  stall {:.0f}%  {}", step, std::to_string(steps_).size(), steps_,
      result.loss, static_cast<double>(tokens_of_step_) / seconds, 100.0 * cost.stall_seconds / seconds, tiers(used));
  if (terminal_) {
    constexpr const char* to_start_and_clear = "\r\x1b[2K";
    out_ << to_start_and_clear << line << std::flush;
    in_line_ = true;
  } else {
    out_ << line << '\n' << std::flush;
  }
  if (!result.non_finite_tensor.empty()) {
    say(fmt::format("step {}: {} is not finite; the update was skipped", step, result.non_finite_tensor));
  }
}

void progress::show(const run_summary& summary) {
  say(fmt::format("loss {:.4f} -> {:.4f}, {:.0f} tokens/s", first_loss_, last_loss_, summary.tokens_per_second));
  say(fmt::format("{} parameters, {} with gradients and Adam state; peaks: {}", summary.parameters,
                  forebay::format_bytes(summary.state_bytes), tiers(summary.memory.peak)));
  if (summary.recomputations > 0) {
    say(fmt::format("computed again in the last step: the activations of {} of {} layers", summary.recomputations,
                    summary.recomputable));
  }
  if (summary.plan.bound_seconds > 0.0) {
    say(describe(summary.plan));
  }
  say("digest of weights and optimizer state: " + summary.digest);
}

void progress::say(const std::string& line) {
  end_line();
  out_ << line << '\n' << std::flush;
}

void progress::end_line() {
  if (in_line_) {
    out_ << '\n';
    in_line_ = false;
  }
}

}  // namespace train_gpt
