#include "what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <forebay/base/error.hpp>
#include <forebay/plan/plan_json.hpp>
#include <fstream>

#include "units.hpp"

namespace plan_model {
namespace {

using forebay::byte_count;
using forebay::place;
using forebay::plan::machine;

constexpr double worth_it = 1.01;  // a tier is large enough when no other is quicker by more than this
constexpr double search_effort = 0.05;
constexpr int halvings = 8;

[[nodiscard]] std::optional<byte_count> enough(question q, byte_count machine::*tier, byte_count least,
                                               byte_count most) {
  q.effort = std::min(q.effort, search_effort);
  const auto seconds_with = [&](byte_count capacity) {
    q.on.model.*tier = capacity;
    const prediction p = predict(q);
    return p.fits() ? p.seconds() : forebay::plan::unlimited_rate;
  };
  const double limit = worth_it * seconds_with(most);
  if (std::isinf(limit)) {
    return std::nullopt;
  }
  double low = static_cast<double>(std::max<byte_count>(least, 1));
  auto high = static_cast<double>(most);
  for (int i = 0; i < halvings && high > 1.05 * low; ++i) {
    const double middle = std::sqrt(low * high);
    (seconds_with(static_cast<byte_count>(middle)) <= limit ? high : low) = middle;
  }
  return static_cast<byte_count>(high);
}

/// \throws io_error; usage_error when the file is not one trace, or says nothing of durations.
[[nodiscard]] forebay::plan::trace read_order(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) {
    const int error_number = errno;
    throw forebay::io_error(
        fmt::format("--trace {}: cannot be read: {}", path.string(), forebay::describe_errno(error_number)),
        error_number);
  }
  std::vector<forebay::plan::trace> all = forebay::plan::read_traces(file, path.string());
  if (all.size() != 1 || all.front().steps.empty()) {
    throw forebay::usage_error(fmt::format("--trace {}: {} orders with steps are in it; one is wanted", path.string(),
                                           all.size() == 1 ? 0 : all.size()));
  }
  return std::move(all.front());
}

/// Room for everything, workspaces included.
[[nodiscard]] byte_count everything(const prediction& p) {
  return p.needs.home + p.needs.device.bytes + p.needs.host.bytes;
}

}  // namespace

question question_of(const settings& s) {
  question q{s.what, std::nullopt, resolve(s.where), s.effort};
  if (s.trace) {
    q.order = read_order(*s.trace);
  }
  return q;
}

std::vector<what_if> what_ifs(const question& q, const settings& s) {
  const machine& m = q.on.model;
  std::vector<what_if> all;
  all.push_back({"twice the host memory", {"--ram", size_option(2 * m.host_capacity)}});
  if (!m.storage.empty()) {
    all.push_back({"one more drive", {"--more-drives", std::to_string(s.where.more_drives + 1)}});
  }
  if (!std::isinf(m.h2d_rate) && !std::isinf(m.d2h_rate)) {
    all.push_back({"next PCIe generation",
                   {"--pcie", fmt::format("{}/{}", rate_option(2 * m.h2d_rate), rate_option(2 * m.d2h_rate))}});
  }
  all.push_back({"twice the device memory", {"--hbm", size_option(2 * m.device_capacity)}});
  if (q.order) {
    return all;  // the rest is about what is trained, and how
  }
  if (q.what.update == place::host) {
    all.push_back({"CPU update twice as fast", {"--ram-rate", rate_option(2 * q.on.speed.update_bytes)}});
  }
  all.push_back(q.what.update == place::host ? what_if{"update on the device", {"--update", "device"}}
                                             : what_if{"update on the host", {"--update", "host"}});
  all.push_back(q.what.again == recompute::none ? what_if{"activations recomputed", {"--recompute", "all"}}
                                                : what_if{"activations kept", {"--recompute", "none"}});
  return all;
}

std::optional<byte_count> enough_device_memory(question q, const prediction& p) {
  return enough(std::move(q), &machine::device_capacity, p.needs.device.bytes, everything(p));
}

std::optional<byte_count> enough_host_memory(question q, const prediction& p) {
  return enough(std::move(q), &machine::host_capacity, p.needs.host.bytes, everything(p));
}

}  // namespace plan_model
