#include "json_log.hpp"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <forebay/base/error.hpp>
#include <nlohmann/json.hpp>
#include <utility>

namespace train_gpt {
namespace {

[[nodiscard]] forebay::io_error failure(const std::filesystem::path& path, int error_number) {
  return {fmt::format("{} cannot be written: {}", path.string(), forebay::describe_errno(error_number)), error_number};
}

}  // namespace

std::string bits_of(float value) { return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(value)); }

json_log::json_log(std::filesystem::path path) : path_(std::move(path)), file_(path_, std::ios::trunc) {
  if (!file_) {
    throw failure(path_, errno);
  }
}

void json_log::add(std::uint64_t step, const step_result& result) {
  const forebay::iteration_report& cost = result.cost;
  nlohmann::ordered_json line{{"step", step},
                              {"loss", result.loss},
                              {"loss_bits", bits_of(result.loss)},
                              {"seconds", cost.seconds},
                              {"stall_seconds", cost.stall_seconds},
                              {"misses", cost.misses},
                              {"device_peak_bytes", cost.peak.device},
                              {"host_peak_bytes", cost.peak.host},
                              {"storage_read_bytes", cost.moved.storage_read},
                              {"storage_written_bytes", cost.moved.storage_written},
                              {"h2d_bytes", cost.moved.h2d},
                              {"d2h_bytes", cost.moved.d2h},
                              {"storage_peak_bytes", cost.peak.storage},
                              {"recomputations", cost.recomputations},
                              {"planned", cost.planned},
                              {"predicted_seconds", cost.predicted_seconds},
                              {"bound_seconds", cost.bound_seconds},
                              {"gradient_norm", result.gradient_norm}};
  if (!result.non_finite_tensor.empty()) {
    line["skipped_for"] = result.non_finite_tensor;
  }
  write_line(line.dump());
}

void json_log::add(const run_summary& summary) {
  const forebay::plan_report& plan = summary.plan;
  nlohmann::ordered_json limits = nlohmann::ordered_json::array();
  for (const forebay::plan::limit& l : plan.limits) {
    limits.push_back({{"what", forebay::plan::to_string(l.what)},
                      {"seconds_if_twice", l.seconds_if_twice},
                      {"matters_from", l.matters_from}});
  }
  const forebay::engine_report& memory = summary.memory;
  const nlohmann::ordered_json line{{"summary",
                                     {{"parameters", summary.parameters},
                                      {"state_bytes", summary.state_bytes},
                                      {"device_capacity", memory.capacity.device},
                                      {"host_capacity", memory.capacity.host},
                                      {"device_peak_bytes", memory.peak.device},
                                      {"host_peak_bytes", memory.peak.host},
                                      {"storage_peak_bytes", memory.peak.storage},
                                      {"device", memory.device},
                                      {"io_backend", memory.io_backend},
                                      {"degradations", memory.degradations},
                                      {"tokens_per_second", summary.tokens_per_second},
                                      {"recomputations", summary.recomputations},
                                      {"recomputable", summary.recomputable},
                                      {"predicted_seconds", plan.predicted_seconds},
                                      {"bound_seconds", plan.bound_seconds},
                                      {"binding", plan.binding},
                                      {"limits", limits},
                                      {"schedules_made", plan.schedules_made},
                                      {"schedules_adopted", plan.schedules_adopted},
                                      {"digest", summary.digest}}}};
  write_line(line.dump());
}

void json_log::write_line(const std::string& line) {
  file_ << line << '\n' << std::flush;
  if (!file_) {
    throw failure(path_, errno);
  }
}

}  // namespace train_gpt
