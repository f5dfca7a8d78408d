#include "run.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <forebay/base/error.hpp>
#include <fstream>
#include <ostream>

#include "answer.hpp"
#include "json_report.hpp"
#include "predicted_timeline.hpp"
#include "settings.hpp"
#include "text_report.hpp"

namespace plan_model {
namespace {

void write_json(const std::filesystem::path& path, const answer& a) {
  std::ofstream file(path, std::ios::trunc);
  file << to_json(a) << std::flush;
  if (!file) {
    const int error_number = errno;
    throw forebay::io_error(
        fmt::format("{} cannot be written: {}", path.string(), forebay::describe_errno(error_number)), error_number);
  }
}

[[nodiscard]] int answer_to(const settings& s, std::ostream& out) {
  const answer a = find_answer(s);
  print_report(out, a);
  if (s.json) {
    write_json(*s.json, a);
  }
  if (s.timeline && a.predicted.fits()) {
    forebay::telemetry::timeline lanes;
    record_plan(lanes, a.predicted, a.asked.on.model);
    forebay::telemetry::write_trace(lanes, s.timeline->string());
  }
  return a.predicted.fits() ? 0 : exit_unfit;
}

}  // namespace

int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& errors) {
  try {
    const command_line line = parse_command_line(arguments, out, errors);
    return line.chosen ? answer_to(*line.chosen, out) : line.exit_code;
  } catch (const forebay::usage_error& e) {
    errors << "plan_model: " << e.what() << '\n';
    return exit_usage;
  } catch (const std::exception& e) {
    errors << "plan_model: " << e.what() << '\n';
    return exit_unfit;
  }
}

}  // namespace plan_model
